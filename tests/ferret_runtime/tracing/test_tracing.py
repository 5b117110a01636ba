"""Spans: whose children they are, what they tell, and that nothing of them is there unless they are wanted."""

from __future__ import annotations

import io
import json
import logging
import os
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from ferret_core.protocol.errors import Exit, FerretError
from ferret_runtime import log_setup, tracing
from ferret_runtime.tracing import RoundTrace
from tests.otlp_collector import Collector, Seen
from tests.refusals import refused

Sent = Callable[[Callable[[], object]], list[Seen]]

ROUND = RoundTrace("exp_5f0c9f6a3b1d2e47", 3, 1)
SECRET = "Frau Wagner, geboren 1950"


def test_a_rounds_ids_follow_from_what_it_is() -> None:
    assert (ROUND.trace_id, len(ROUND.root_id)) == ("e5a288b7c2eaf20fcff1180ea99e9056", 16)
    others = [ROUND, ROUND._replace(round=4), ROUND._replace(attempt=2), ROUND._replace(experiment="exp_0")]
    assert len({other.trace_id for other in others}) == len({other.root_id for other in others}) == 4


def test_spans_stand_under_their_round_and_under_each_other(sent: Sent) -> None:
    def act() -> None:
        with tracing.span("aggregate", ROUND, "consumer"), tracing.span("fold", contributions=5) as note:
            note(bytes=12, left_out=None)

    aggregate, fold = sent(act)
    assert (aggregate.service, aggregate.name, fold.name) == ("ferret-test", "aggregate", "fold")
    assert aggregate.trace == fold.trace == ROUND.trace_id
    assert (aggregate.parent, fold.parent) == (ROUND.root_id, aggregate.id)
    assert aggregate.attributes == {"ferret.experiment": ROUND.experiment, "ferret.round": 3, "ferret.attempt": 1}
    assert fold.attributes == {"ferret.contributions": 5, "ferret.bytes": 12}
    assert [aggregate.failed, fold.failed] == [False, False]


def test_the_rounds_own_span_is_above_them_with_the_rounds_times(sent: Sent) -> None:
    begin = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
    (root,) = sent(lambda: tracing.round_ended(ROUND, begin, begin + timedelta(seconds=2), "quorum.missed", bytes_up=7))
    assert (root.name, root.trace, root.id, root.parent) == ("round", ROUND.trace_id, ROUND.root_id, "")
    assert (root.end - root.begin, root.begin) == (2_000_000_000, int(begin.timestamp()) * 10**9)
    assert (root.failed, root.attributes["error.type"], root.attributes["ferret.bytes_up"]) == (
        True,
        "quorum.missed",
        7,
    )


def test_an_error_is_told_by_its_code_alone(sent: Sent, collector: Collector) -> None:
    def act() -> None:
        for error in (FerretError("contribution.malformed", SECRET), ValueError(SECRET)):
            with pytest.raises(type(error)), tracing.span("fold"):
                raise error

    typed, other = sent(act)
    assert (typed.failed, typed.attributes) == (True, {"error.type": "contribution.malformed"})
    assert (other.failed, other.attributes) == (True, {"error.type": "ValueError"})
    assert SECRET.encode() not in b"".join(collector.bodies)


def test_a_message_carries_the_span_and_a_round_links_to_it(sent: Sent) -> None:
    def act() -> None:
        with tracing.span("POST", None, "server"):
            headers = tracing.headers()
        assert headers.keys() == {"traceparent"}
        with tracing.received(headers), tracing.span("coordinate"), tracing.span("open", ROUND):
            pass
        with tracing.received({}), tracing.span("alone"):
            pass

    request, coordinate, opened, alone = sent(act)
    assert (coordinate.trace, coordinate.parent) == (request.trace, request.id)
    assert (opened.trace, opened.links) == (ROUND.trace_id, [request.trace])
    assert alone.trace not in {request.trace, ROUND.trace_id}


def test_logs_have_the_ids_while_a_span_is_active(
    sent: Sent, monkeypatch: pytest.MonkeyPatch, own_logging: None
) -> None:
    monkeypatch.setattr(sys, "stderr", written := io.StringIO())
    log_setup.configure("info", "json")

    def act() -> None:
        with tracing.span("aggregate", ROUND), tracing.span("fold"):
            logging.getLogger("ferret_worker").info("inside")
        logging.getLogger("ferret_worker").info("outside")

    _, fold = sent(act)
    inside, outside = map(json.loads, written.getvalue().splitlines())
    assert (inside["trace_id"], inside["span_id"]) == (ROUND.trace_id, fold.id)
    assert "trace_id" not in outside


def test_ids_are_not_those_of_whoever_has_the_same_seed(sent: Sent) -> None:
    def act() -> None:
        for _ in range(2):
            random.seed(5)
            with tracing.span("fold"):
                pass

    first, second = sent(act)
    assert (first.id != second.id, first.trace != second.trace) == (True, True)


def test_a_round_is_sampled_whole_or_not_at_all(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    now = datetime.now(UTC)

    def act() -> None:
        for number in range(40):
            of = ROUND._replace(round=number)
            with tracing.span("train", of):
                pass
            tracing.round_ended(of, now, now, None)

    spans = sent(act)
    trained, roots = ({span.trace for span in spans if span.name == name} for name in ("train", "round"))
    assert trained == roots
    assert 0 < len(roots) < 40


def test_the_environment_names_the_sender(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "hospital-a")

    def act() -> None:
        with tracing.span("fold"):
            pass

    assert [span.service for span in sent(act)] == ["hospital-a"]


@pytest.mark.parametrize(
    "environment",
    [
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_SDK_DISABLED": "true"},
        {"OTEL_TRACES_EXPORTER": "none"},
    ],
    ids=str,
)
def test_without_an_endpoint_or_switched_off_nothing_is_recorded(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    tracing.start("ferret-test")
    with tracing.span("fold", ROUND) as note, tracing.received({"traceparent": "00-1"}):
        note(bytes=1)
        assert tracing.headers() == {}
    assert not tracing.on()
    assert collector.bodies == []


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "-1"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with refused("settings.invalid", "OTEL_"):
        tracing.start("ferret-test")


OFF = """
import sys
import {modules}
from ferret_runtime import tracing
before = set(sys.modules)
tracing.start("ferret-api")
with tracing.span("fold", tracing.RoundTrace("exp_0", 1, 1)), tracing.received({{}}):
    tracing.headers()
tracing.stop()
print(sorted(set(sys.modules) - before), [name for name in sys.modules if name.startswith({names})])
"""
# Other libraries import some of OpenTelemetry by themselves, where it is installed: FastAPI, redis-py, transformers.
API = OFF.format(
    modules="ferret_api.server, ferret_sdk.service.service", names=("opentelemetry.sdk.trace", "opentelemetry.exporter")
)
WORKER = OFF.format(modules="ferret_worker.app, ferret_worker.playground.app", names="'opentelemetry.exporter'")
MISSING = """
import sys
sys.modules["opentelemetry.sdk"] = None
from ferret_db import schema_version
schema_version.check = lambda url: None
from ferret_api.__main__ import main
sys.exit(main(["--port", "0"]))
"""


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FERRET_", "OTEL_"))}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.heavy
@pytest.mark.parametrize("program", [API, WORKER], ids=["api", "worker"])
def test_off_nothing_is_imported_for_it(program: str) -> None:
    done = run(program)
    assert done.stdout == "[] []\n", done.stderr


@pytest.mark.heavy
def test_without_the_packages_a_process_says_what_to_install(tmp_path: object) -> None:
    done = run(MISSING, FERRET_HOME=str(tmp_path), OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318")
    assert done.returncode == Exit.FAILURE, done.stderr
    assert "OTEL_EXPORTER_OTLP_ENDPOINT is set" in done.stderr
    assert "pip install 'ferret-service[tracing]'" in done.stderr
    assert "Traceback" not in done.stderr
