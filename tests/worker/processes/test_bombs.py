"""Experiments that never end or take all memory, on real workers: each ends with its reason, the control completes."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ferret_core.protocol.errors import Exit
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.engine import lifecycle
from tests.worker.conftest import usually_on

Fleet = Any  # conftest.py

GIANT = {"batch_size": 65_536, "accumulation": 65_536}
"""Within the bounds; its first step would hold terabytes."""
MEMORY = 3 * 2**29
UNDER_WAY = 2**30
"""Bytes that a worker holds only in the giant's step."""


def until(fleet: Fleet, holds: Callable[[], bool]) -> None:
    """As a supervisor would: workers that ended themselves are started again."""

    def restarted() -> bool:
        for child in fleet.children.values():
            if child.exit_code == Exit.FAILURE:
                child.start()
        return holds()

    fleet.until(restarted)


def finished(fleet: Fleet, *identities: str) -> Callable[[], bool]:
    return lambda: all(fleet.experiment(identity).state.finished for identity in identities)


@pytest.fixture
def giant(toy_spec: Callable[..., ExperimentSpec]) -> ExperimentSpec:
    spec = toy_spec("fedavg", rounds=1, participants={"simulated": 1}, round={"attempts": 1})
    algorithm = {**spec.algorithm.model_dump(), "local": GIANT}
    return ExperimentSpec.model_validate({**spec.model_dump(), "algorithm": algorithm})


@usually_on("sqlite")
@pytest.mark.slow
def test_bombs_end_with_their_reasons_and_the_control_completes(
    fleet: Fleet, plain_spec: Callable[..., ExperimentSpec], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with gzip.open(tmp_path / "bomb.gz", "wb", compresslevel=1) as file:
        file.write(b" " * 2**26)
    paths = [str(tmp_path / "pipe"), "/dev/zero", str(tmp_path / "bomb.gz")]
    fleet.environment["FERRET_TASK_MEMORY_BYTES"] = str(MEMORY)
    fleet.start(Queue.AGGREGATE)
    fleet.start(Queue.TRAIN)
    bombs = [fleet.submit(plain_spec(rounds=1, dataset={"name": "jsonl", "train": path})) for path in paths]
    large = fleet.submit(plain_spec(rounds=1, algorithm={"name": "fetchsgd", "columns": 2**34}))
    control = fleet.submit(plain_spec(rounds=1))
    until(fleet, finished(fleet, *bombs, large, control))
    assert [fleet.experiment(bomb).error["code"] for bomb in bombs] == ["dataset.invalid"] * 3
    assert fleet.experiment(large).error["code"] == "memory.exhausted"
    assert fleet.experiment(control).state == ExperimentState.COMPLETED


@pytest.mark.slow
@usually_on("sqlite")
def test_a_cancelled_step_that_would_take_days_lets_its_worker_go(
    fleet: Fleet, plain_spec: Callable[..., ExperimentSpec], giant: ExperimentSpec
) -> None:
    fleet.start(Queue.AGGREGATE)
    worker = fleet.start(Queue.TRAIN)
    identity = fleet.submit(giant)

    def training() -> bool:
        return any(row.task == TaskName.TRAIN for row in fleet.workers().values())

    def within_the_step() -> bool:
        statm = Path(f"/proc/{worker.pid}/statm").read_text()
        return training() and int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE") > UNDER_WAY

    fleet.until(within_the_step)
    with fleet.database.begin() as s:
        lifecycle.cancel(s, identity)
    fleet.until(lambda: worker.exit_code == Exit.FAILURE)
    assert not training(), "nobody is still thought to work on it"
    control = fleet.submit(plain_spec(rounds=1))
    until(fleet, finished(fleet, control))
    assert fleet.experiment(control).state == ExperimentState.COMPLETED
    assert fleet.experiment(identity).state == ExperimentState.CANCELLED
