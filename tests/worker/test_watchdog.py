"""A task that does not end, ends its process: with the reason in the database, and nobody else harmed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import AssignmentState, ExperimentState
from ferret_core.protocol.task_names import TaskName
from ferret_db.engine import assignments as assignment_engine
from ferret_db.engine import lifecycle, task_attempts
from ferret_db.repositories import assignments, rounds, task_runs
from ferret_worker import watchdog as module
from ferret_worker.settings import WorkerSettings
from ferret_worker.watchdog import Watchdog

Service = Any  # tests/worker/conftest.py


@pytest.fixture
def ended() -> list[int]:
    """The exit codes with which the process would have ended."""
    return []


@pytest.fixture
def running(service: Service, plain_spec: Callable[..., ExperimentSpec]) -> str:
    """An experiment whose first assignment waits."""
    identity = service.submit(plain_spec(rounds=1, participants={"simulated": 4}))
    service.run(until=lambda message: message.task == TaskName.COORDINATE)
    return identity


def settings_of(service: Service, **values: Any) -> None:
    service.context.settings = WorkerSettings(**{**service.settings.model_dump(), **values})


def begun(service: Service, task: TaskName) -> str:
    """A task of the queue, as a worker has it in hand; its argument."""
    message = next(message for message in service.messages if message.task == task)
    who = service.presence.who
    assert service.database.transact(lambda s: task_attempts.begin(s, message.task, message.argument, who, strikes=3))
    if task == TaskName.TRAIN:
        service.database.transact(lambda s: assignment_engine.lease(s, message.argument, 60))
    return message.argument


def state_of(service: Service, assignment: str) -> AssignmentState:
    with service.database.read() as s:
        return assignments.get(s, assignment).state


def test_a_task_of_a_cancelled_experiment_is_asked_to_stop_and_then_ended(
    service: Service, running: str, ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    dog = Watchdog(service.context, service.presence, ended.append)
    argument = begun(service, TaskName.TRAIN)
    with dog.over(TaskName.TRAIN, argument, running):
        dog.look()
        assert (service.context.unwanted, ended) == (False, [])
        service.database.transact(lambda s: lifecycle.cancel(s, running))
        dog.look()
        assert (service.context.unwanted, ended) == (True, [])
        monkeypatch.setattr(module, "GRACE_SECONDS", 0)
        dog.look()
    assert ended == [1]
    with service.database.read() as s:
        assert task_runs.get(s, TaskName.TRAIN, argument) is None, "nothing is held against it"
    assert service.experiment(running).state == ExperimentState.CANCELLED
    dog.look()
    assert ended == [1], "no task, no end"


def test_a_straggler_whose_round_is_over_has_more_time(
    service: Service, running: str, ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0)
    dog = Watchdog(service.context, service.presence, ended.append)
    argument = begun(service, TaskName.TRAIN)
    with service.database.begin() as s:
        assignments.expire(s, rounds.latest(s, running).id)
    with dog.over(TaskName.TRAIN, argument, running):
        dog.look()
        dog.look()
        assert (service.context.unwanted, ended) == (True, [])
        monkeypatch.setattr(module, "LATE_GRACE_SECONDS", 0)
        dog.look()
    assert ended == [1]


@pytest.mark.parametrize(
    ("limits", "code", "setting"),
    [
        ({"task_memory_bytes": 2**20}, "memory.exhausted", "FERRET_TASK_MEMORY_BYTES"),
        ({"task_limit_seconds": 1}, "task.too_long", "FERRET_TASK_LIMIT_SECONDS"),
    ],
)
def test_a_task_beyond_a_limit_is_a_strike_and_three_fail_the_experiment_by_that_reason(
    service: Service, running: str, ended: list[int], limits: dict[str, int], code: str, setting: str
) -> None:
    other = service.submit(_spec(service, running))
    settings_of(service, **limits)
    for strike in (1, 2, 3):
        assert service.experiment(running).state == ExperimentState.RUNNING
        presence = service.presence = service.new_presence()
        dog = Watchdog(service.context, presence, ended.append)
        argument = begun(service, TaskName.TRAIN)
        with dog.over(TaskName.TRAIN, argument, running):
            time.sleep(1.1 if "task_limit_seconds" in limits else 0)
            dog.look()
        assert len(ended) == strike
        if strike < 3:
            assert state_of(service, argument) == AssignmentState.PENDING, "another worker can have it at once"
    failed = service.experiment(running)
    assert (failed.state, failed.error["code"]) == (ExperimentState.FAILED, code)
    assert setting in failed.error["detail"]
    assert service.experiment(other).state == ExperimentState.QUEUED


def test_preparing_that_takes_too_long_fails_its_own_experiment_at_once(
    service: Service, plain_spec: Callable[..., ExperimentSpec], ended: list[int]
) -> None:
    endless = service.submit(plain_spec(rounds=1))
    other = service.submit(plain_spec(rounds=1))
    settings_of(service, prepare_limit_seconds=1)
    dog = Watchdog(service.context, service.presence, ended.append)
    argument = begun(service, TaskName.COORDINATE)
    assert argument == endless
    with dog.over(TaskName.COORDINATE, argument, endless):
        time.sleep(1.1)
        dog.look()
    failed = service.experiment(endless)
    assert (ended, failed.state, failed.error["code"]) == ([1], ExperimentState.FAILED, "task.too_long")
    assert "FERRET_PREPARE_LIMIT_SECONDS" in failed.error["detail"]
    assert service.experiment(other).state == ExperimentState.QUEUED


def _spec(service: Service, identity: str) -> ExperimentSpec:
    return ExperimentSpec.model_validate(service.experiment(identity).spec)


def test_a_reason_that_cannot_be_written_does_not_keep_the_process(
    service: Service, running: str, ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECORD_SECONDS", 0.1)
    settings_of(service, task_memory_bytes=2**20)
    dog = Watchdog(service.context, service.presence, ended.append)
    argument = begun(service, TaskName.TRAIN)
    with service.database.begin(), dog.over(TaskName.TRAIN, argument, running):  # the task holds the write lock
        dog.look()
    assert ended == [1]
    for thread in threading.enumerate():
        if thread.name == "last words":
            thread.join()
