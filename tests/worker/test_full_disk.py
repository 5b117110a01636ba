"""A full disk stops nothing for good: what was under way stays as it was, and goes on when there is room.

The disk is a real one, of a few megabytes in memory; or the kernel's limit on the size of files stands in for it.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_core.protocol.task_names import TaskName
from ferret_core.simulate import simulate
from ferret_core.storage import file as file_storage
from ferret_db.engine import file_integrity
from ferret_db.repositories import ledger, rounds, stored_files, task_runs
from ferret_db.tables import Round
from ferret_worker.settings import WorkerSettings
from tests import small_disk
from tests.small_disk import SmallDisk

Service = Any  # tests/worker/conftest.py
MEBIBYTE = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk.mounted(tmp_path / "disk", 64) as disk:
        yield disk


@pytest.fixture
def settings(settings: WorkerSettings, disk: SmallDisk) -> WorkerSettings:
    """Everything lies on the small disk: the storage and, with SQLite, the database."""
    changes: dict[str, Any] = {"home": disk.path, "storage_url": f"file://{disk.path}/storage"}
    if settings.database_url.startswith("sqlite"):
        changes["database_url"] = f"sqlite:///{disk.path}/ferret.db"
    return settings.model_copy(update=changes)


@pytest.fixture
def spec(plain_spec: Callable[..., ExperimentSpec]) -> ExperimentSpec:
    return plain_spec(rounds=2)


def run_up_to(service: Service, task: TaskName, round_number: int) -> None:
    """Until the next message is that task's, in that round."""
    while service.messages[0].task != task or opened(service) < round_number:
        service.step()


def opened(service: Service) -> int:
    with service.database.read() as s:
        return s.scalars(select(func.count()).select_from(Round)).one()


def keep_trying(service: Service, times: int = 5) -> None:
    """What the workers and the reconciler do, however often it fails."""
    for _ in range(times):
        while service.messages:
            with suppress(OperationalError):  # SQLite's own disk is full
                service.step()
        with suppress(OperationalError):
            service.later()


def assert_whole(service: Service, experiment_id: str) -> None:
    """Every stored file is whole, and all that the database names are there."""
    storage = service.context.storage
    for file in storage.list():
        name = Path(file.location).name
        assert not name.startswith(".tmp-")
        if not file.location.startswith("checkpoints/"):
            assert digest_bytes(storage.path(file.location).read_bytes()) == name
    with service.database.read() as s:
        assert file_integrity.damaged(storage, stored_files.of_all(s, experiment_id)) == []


def assert_finishes(service: Service, experiment_id: str, spec: ExperimentSpec) -> None:
    for _ in range(5):
        service.run()
        service.later()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)
    assert_whole(service, experiment_id)
    with service.database.read() as s:
        assert [entry.round for entry in ledger.after(s, experiment_id, 0, 10)] == [1, 2]


@pytest.mark.parametrize("left", [16 * MEBIBYTE, 0])
def test_a_round_stays_frozen_while_the_disk_is_full(
    service: Service, spec: ExperimentSpec, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    """With some room left the write is refused before it begins; with none at all it fails in the middle."""
    if not left:
        monkeypatch.setattr(file_storage.Backend, "require_room", lambda self, size: None)
    experiment_id = service.submit(spec)
    run_up_to(service, TaskName.AGGREGATE, 1)
    disk.fill(left)
    keep_trying(service)
    with service.database.read() as s:
        (frozen,) = rounds.in_states(s, experiment_id, *RoundState)
        failing = task_runs.failing(s, experiment_id)
    assert (frozen.number, frozen.attempt, frozen.state) == (1, 1, RoundState.FROZEN)
    assert service.experiment(experiment_id).state == ExperimentState.RUNNING
    if left:
        assert [(item.task, item.error["code"]) for item in failing if item.error] == [
            (TaskName.AGGREGATE, "storage.full")
        ]
    assert_whole(service, experiment_id)
    disk.make_room()
    assert_finishes(service, experiment_id, spec)


@pytest.mark.parametrize(
    "task",
    [
        TaskName.TRAIN,
        *(pytest.param(task, marks=pytest.mark.slow) for task in (TaskName.COORDINATE, TaskName.EVALUATE)),
    ],
)
def test_no_task_fails_for_a_full_disk(service: Service, spec: ExperimentSpec, disk: SmallDisk, task: TaskName) -> None:
    experiment_id = service.submit(spec)
    run_up_to(service, task, 0 if task == TaskName.COORDINATE else 1)
    disk.fill(left=16 * MEBIBYTE)
    keep_trying(service)
    assert not service.experiment(experiment_id).state.finished
    assert_whole(service, experiment_id)
    disk.make_room()
    assert_finishes(service, experiment_id, spec)


@contextmanager
def file_size_limit(limit: int) -> Generator[None]:
    """No file may grow beyond ``limit`` bytes: a write fails in the middle with EFBIG."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("limit", [1000, *(pytest.param(limit, marks=pytest.mark.slow) for limit in (0, 20_000))])
def test_a_file_that_may_not_grow_is_no_half_file(service: Service, spec: ExperimentSpec, limit: int) -> None:
    experiment_id = service.submit(spec)
    run_up_to(service, TaskName.AGGREGATE, 1)
    with file_size_limit(limit), suppress(OperationalError):
        service.step()
    with service.database.read() as s:
        (frozen,) = rounds.in_states(s, experiment_id, *RoundState)
    assert frozen.state == RoundState.FROZEN
    assert_whole(service, experiment_id)
    service.later()
    assert_finishes(service, experiment_id, spec)
