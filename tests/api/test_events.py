"""Events over a real server: in order, without loss, with an end, and never in the way of a shutdown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from ferret_api.events import poller

pytestmark = pytest.mark.timeout(60)


def parse(response: httpx.Response) -> Iterator[dict[str, str]]:
    """The fields of each event; comments are left out."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            yield fields
            fields = {}


def stream(live: Any, experiment_id: str, **request: Any) -> Any:
    return live.admin.stream("GET", f"/api/v1/experiments/{experiment_id}/events/stream", **request)


def test_a_stream_tells_what_happens_as_it_happens_and_ends_with_the_experiment(live: Any) -> None:
    experiment_id = live.site.submit()
    with stream(live, experiment_id) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        assert response.headers["Cache-Control"] == "no-cache"
        told = parse(response)
        assert next(told)["event"] == "experiment.queued"
        live.site.start(experiment_id)
        assert next(told)["event"] == "experiment.running"
        live.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
        rest = list(told)
    assert rest[-1]["event"] == "experiment.cancelled"
    items = live.admin.get(f"/api/v1/experiments/{experiment_id}/events").json()["items"]
    assert json.loads(rest[-1]["data"]) == items[-1]
    assert rest[-1]["id"] == str(items[-1]["seq"])


def test_more_events_than_one_look_finds(live: Any) -> None:
    experiment_id = live.site.submit()
    live.site.append(experiment_id, 230)
    live.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    with stream(live, experiment_id) as response:
        assert [int(event["id"]) for event in parse(response)] == list(range(1, 233))


def test_the_header_of_a_browser_that_reconnects_wins_over_the_address(live: Any) -> None:
    experiment_id = live.site.running()
    live.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    with stream(live, experiment_id, params={"after": 1}) as response:
        assert next(parse(response))["id"] == "2"
    with stream(live, experiment_id, params={"after": 1}, headers={"Last-Event-ID": "2"}) as response:
        assert next(parse(response))["id"] == "3"


def test_after_the_last_event_a_browser_is_told_not_to_reconnect(live: Any) -> None:
    experiment_id = live.site.submit()
    live.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    with stream(live, experiment_id, headers={"Last-Event-ID": "2"}) as response:
        assert response.status_code == 204


@pytest.mark.parametrize(
    ("headers", "code"), [({"Last-Event-ID": "x"}, "request.invalid"), ({}, "experiment.not_found")]
)
def test_a_problem_is_answered_before_the_stream_begins(live: Any, headers: dict[str, str], code: str) -> None:
    answer = live.admin.get("/api/v1/experiments/exp_nobody/events/stream", headers=headers)
    assert answer.json()["code"] == code


def test_a_silent_stream_is_kept_alive(live: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "PING_SECONDS", 0.1)
    experiment_id = live.site.submit()
    with stream(live, experiment_id, params={"after": 1}) as response:
        assert next(response.iter_lines()).startswith(":")
