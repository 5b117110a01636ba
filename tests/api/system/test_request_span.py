"""Requests as spans: whose trace they belong to, and that they tell nothing of what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from sqlalchemy.orm import Session

from ferret_db.engine import lifecycle
from ferret_runtime import tracing
from ferret_runtime.tracing import RoundTrace
from tests.otlp_collector import Collector

CALLER = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
ATTRIBUTES = {"http.request.method", "http.route", "http.response.status_code"}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as collector:
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        tracing.start("ferret-api")
        yield collector
        tracing.stop()


def test_a_request_has_a_trace_of_its_own_or_the_callers(collector: Collector, site: Any) -> None:
    experiment_id = site.running()
    site.admin.get(f"/api/v1/experiments/{experiment_id}")
    site.admin.get(f"/api/v1/experiments/{experiment_id}", headers={"traceparent": f"00-{CALLER}-{SPAN}-01"})
    site.admin.get(f"/api/v1/experiments/{experiment_id}", headers={"traceparent": "a surprise"})
    site.client().get("/api/v1/experiments?name=in-a-query")
    site.admin.get("/no/such/page-of-mine")
    for probe in ("/healthz", "/readyz", "/metrics"):
        site.admin.get(probe)
    tracing.stop()
    own, callers, surprised, refused, unknown = collector.named("GET")
    assert (callers.trace, callers.parent) == (CALLER, SPAN)
    assert (own.parent, surprised.parent, refused.parent) == ("", "", "")
    assert own.attributes == {
        "http.request.method": "GET",
        "http.route": "/api/v1/experiments/{experiment_id}",
        "http.response.status_code": 200,
    }
    assert refused.attributes["http.response.status_code"] == 401
    assert unknown.attributes.keys() <= ATTRIBUTES
    everything = b"".join(collector.bodies)
    for secret in (experiment_id, site.context.admin.value, "in-a-query", "page-of-mine", "testclient"):
        assert secret.encode() not in everything


def test_an_answer_that_says_that_the_service_failed_is_marked(collector: Collector, site: Any) -> None:
    site.database.dispose()
    (site.context.settings.home / "ferret.db").write_bytes(b"no database")
    assert site.admin.get("/api/v1/experiments").status_code >= 500
    tracing.stop()
    (failed,) = collector.named("GET")
    assert failed.failed
    assert failed.attributes["error.type"] == str(failed.attributes["http.response.status_code"])


def test_a_contribution_arrives_under_its_round(collector: Collector, site: Any) -> None:
    member = site.member(simulated=())
    blob = member.blob()
    assert member.upload(b"junk").status_code == 422
    assert member.upload(blob).status_code == 201
    site.commit(member.experiment_id)
    tracing.stop()
    spoilt, taken = collector.named("receive")
    (root,) = collector.named("round")
    of = RoundTrace(member.experiment_id, 1, 1)
    assert {span.trace for span in (spoilt, taken, root)} == {of.trace_id}
    assert taken.parent == spoilt.parent == root.id == of.root_id
    assert taken.links == [collector.named("PUT")[1].trace]
    assert (taken.attributes["ferret.participant"], taken.attributes["ferret.bytes"]) == ("site-a", len(blob))
    assert (spoilt.failed, spoilt.attributes["error.type"]) == (True, "contribution.malformed")
    assert (root.attributes["ferret.state"], root.attributes["ferret.bytes_up"]) == ("committed", len(blob))


@pytest.mark.parametrize("committed", [True, False])
def test_a_round_that_is_abandoned_says_so_once_that_is_committed(
    collector: Collector, site: Any, committed: bool
) -> None:
    experiment_id = site.running()
    site.open_round(experiment_id, simulated=["client-001"])

    def cancel(s: Session) -> None:
        lifecycle.cancel(s, experiment_id)
        if not committed:
            raise RuntimeError

    with nullcontext() if committed else pytest.raises(RuntimeError):
        site.database.transact(cancel)
    tracing.stop()
    found = [(root.trace, root.attributes["ferret.state"]) for root in collector.named("round")]
    assert found == [(RoundTrace(experiment_id, 1, 1).trace_id, "abandoned")][:committed]
