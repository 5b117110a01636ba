"""Real workers that are killed, or whose collector hangs, on a real broker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import Queue
from ferret_core.simulate import simulate
from ferret_runtime.tracing import RoundTrace
from tests.otlp_collector import Collector
from tests.worker.conftest import usually_on

pytestmark = [pytest.mark.redis, pytest.mark.timeout(1200)]
SpecFactory = Callable[..., ExperimentSpec]
Fleet = Any  # tests/worker/processes/conftest.py
LINES = re.compile("spans were lost")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.mark.slow
@usually_on("postgresql")
def test_a_killed_workers_round_goes_on_in_the_same_trace(
    fleet: Fleet, plain_spec: SpecFactory, collector: Collector
) -> None:
    environment = collector.environment | {"OTEL_BSP_SCHEDULE_DELAY": "5"}
    workers = [
        dying_once(fleet, Queue.AGGREGATE, "aggregate.computed:1", environment),
        dying_once(fleet, Queue.TRAIN, "train.trained:2", environment),
    ]
    before = [worker.pid for worker in workers]
    experiment = fleet.until_finished(fleet.submit(plain_spec(rounds=1)))
    assert (experiment.state, experiment.round) == (ExperimentState.COMPLETED, 1)
    assert not {worker.pid for worker in workers} & set(before), "both were killed"
    for worker in workers:
        fleet.terminate(worker)
    fleet.until(lambda: all(worker.exit_code is not None for worker in workers))

    of = RoundTrace(experiment.id, 1, 1)
    of_round = [span for span in collector.spans if span.attributes.get("ferret.round") == 1]
    assert {span.trace for span in of_round} == {of.trace_id}
    trained = {span.attributes["ferret.participant"] for span in of_round if span.name == "train"}
    assert trained == {"client-001", "client-002", "client-003"}
    (root,) = collector.named("round")
    assert (root.id, root.attributes["ferret.state"]) == (of.root_id, "committed")
    assert [span.trace for span in collector.named("aggregate_round")] == [of.trace_id], (
        "what the first computed died with it"
    )


def dying_once(fleet: Fleet, queue: Queue, point: str, environment: dict[str, str]) -> Any:
    """A worker that is killed at ``point``, and not once it is started again."""
    child = fleet.start(queue, **environment, FERRET_FAILPOINT=point)
    child.environment = {name: value for name, value in child.environment.items() if name != "FERRET_FAILPOINT"}
    return child


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_collector_that_hangs_keeps_nobody(fleet: Fleet, plain_spec: SpecFactory) -> None:
    spec = plain_spec(rounds=2)
    with Collector(hangs=True) as collector:
        workers = [fleet.start(queue, **collector.environment) for queue in (Queue.AGGREGATE, Queue.TRAIN)]
        experiment = fleet.until_finished(fleet.submit(spec))
        assert collector.asked.is_set()
        for worker in workers:
            fleet.terminate(worker)
        fleet.until(lambda: all(worker.exit_code is not None for worker in workers))
    assert experiment.digest == simulate(spec).digest
    assert [worker.exit_code for worker in workers] == [0, 0]
    for worker in workers:
        assert len(LINES.findall(worker.log.read_text())) <= 1
