"""One training worker of two processes: what it contributes is what one process would, also when one of them dies."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_core.simulate import simulate
from ferret_db.repositories import rounds
from tests.worker.conftest import usually_on

pytestmark = [pytest.mark.redis, pytest.mark.timeout(600)]  # each starts several processes that load torch
SpecFactory = Callable[..., ExperimentSpec]
Fleet = Any  # tests/worker/processes/conftest.py
TORCHRUN = (sys.executable, "-P", "-m", "torch.distributed.run", "--nproc-per-node", "2", "--monitor-interval", "0.1")
LONG = {"optimizer": "normalized", "steps": 10, "batch_size": 1, "accumulation": 2}
QUICK = {"examples": 2, "generate_examples": 0}


@contextmanager
def team(fleet: Fleet, *more: str) -> Iterator[Any]:
    """A worker of two processes under torchrun, which ends them when it is told to end."""
    child = fleet.run("team", [*TORCHRUN, *more, "-m", "ferret_worker", "train"], FERRET_DEVICE="cpu")
    try:
        yield child
    finally:
        if child.exit_code is None:
            fleet.terminate(child)
            fleet.until(lambda: child.exit_code is not None)


def processes(child: Any) -> list[int]:
    """The pids of the team's processes."""
    return [int(pid) for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()]


def trainers(fleet: Fleet, *, busy: bool = False) -> list[int]:
    """The pids of workers that speak for a team."""
    rows = fleet.workers().items()
    return [pid for pid, row in rows if row.queue == Queue.TRAIN and (row.task == TaskName.TRAIN or not busy)]


@pytest.mark.slow
@usually_on("postgresql")
def test_a_team_trains_like_one_process_and_nothing_is_lost_with_a_process_of_it(
    fleet: Fleet, toy_spec: SpecFactory
) -> None:
    spec = toy_spec(rounds=2, options={"K": 200, "local": LONG}, participants={"simulated": 2}, evaluation=QUICK)
    fleet.start(Queue.AGGREGATE)
    with team(fleet, "--max-restarts", "3") as child:
        experiment_id = fleet.submit(spec)
        fleet.until(lambda: bool(trainers(fleet, busy=True)))
        (speaker,) = trainers(fleet)
        (follower,) = [pid for pid in processes(child) if pid != speaker]
        os.kill(follower, signal.SIGKILL)  # in the middle of a client's part
        experiment = fleet.until_finished(experiment_id)
        assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)
        assert speaker not in processes(child)
        with fleet.database.read() as s:
            tried = rounds.list_page(s, experiment_id, 10).items
        assert sorted((each.round.number, each.round.attempt) for each in tried) == [(1, 1), (2, 1)]
    assert child.exit_code is not None


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_team_refuses_adapters_by_name_and_trains_on(fleet: Fleet, toy_spec: SpecFactory) -> None:
    fleet.start(Queue.AGGREGATE)
    with team(fleet):
        refused = fleet.until_finished(fleet.submit(toy_spec("fedit", rounds=1, evaluation=QUICK)))
        assert refused.state == ExperimentState.FAILED
        assert "adapters" in str(refused.error)
        spec = toy_spec("fedavg", rounds=1, evaluation=QUICK)
        trained = fleet.until_finished(fleet.submit(spec))
        assert (trained.state, trained.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_only_training_is_done_by_a_team(fleet: Fleet) -> None:
    child = fleet.run("wrong", [*TORCHRUN, "-m", "ferret_worker", "aggregate"])
    fleet.until(lambda: child.exit_code is not None)
    assert child.exit_code != 0
    assert "WORLD_SIZE = 2: only workers that train work as a team" in child.log.read_text()
