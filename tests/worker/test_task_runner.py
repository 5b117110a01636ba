"""Every task passes one wrapper: what a bug, a crash, a full disk and a stop leave behind, and how it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select
from structlog.contextvars import get_contextvars

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import AssignmentState, ExperimentState
from ferret_core.protocol.task_names import TaskName
from ferret_core.simulate import simulate
from ferret_db.repositories import assignments, metrics
from ferret_db.tables import TaskRun, Worker
from ferret_worker import task_runner as performing

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


@pytest.fixture
def replace(monkeypatch: pytest.MonkeyPatch) -> Callable[[TaskName, Callable[..., None]], None]:
    """``replace(task, work)``: what a message of that task calls from now on."""

    def run(task: TaskName, work: Callable[..., None]) -> None:
        monkeypatch.setitem(performing.TASKS, task, work)

    return run


def raising(error: BaseException) -> Callable[..., None]:
    def work(*_: object) -> None:
        raise error

    return work


def runs(service: Service) -> list[TaskRun]:
    with service.database.read() as s:
        return list(s.scalars(select(TaskRun)))


def test_nothing_is_left_of_tasks_that_ended_well(service: Service, plain_spec: SpecFactory) -> None:
    service.submit(plain_spec(rounds=1))
    service.run()
    assert runs(service) == []
    with service.database.read() as s:
        (worker,) = s.scalars(select(Worker)).all()
    assert (worker.id, worker.task, worker.subject) == (service.presence.who.id, None, None)


def test_a_bug_is_tried_three_times_and_told(
    service: Service, plain_spec: SpecFactory, replace: Any, caplog: pytest.LogCaptureFixture
) -> None:
    experiment_id = service.submit(plain_spec())
    replace(TaskName.COORDINATE, raising(KeyError("w")))
    for attempt in (1, 2, 3):
        service.perform(TaskName.COORDINATE, experiment_id)
        assert [(run.attempts, run.worker) for run in runs(service)] == [(attempt, None)]
        assert service.experiment(experiment_id).state == ExperimentState.QUEUED
    assert "Traceback" in caplog.text
    service.perform(TaskName.COORDINATE, experiment_id)
    error = service.experiment(experiment_id).error
    assert error["code"] == "task.given_up"
    assert "KeyError: 'w'" in error["detail"]


def test_a_worker_that_stops_gives_its_training_back_at_the_next_step(
    service: Service, plain_spec: SpecFactory
) -> None:
    spec = plain_spec(rounds=1)
    experiment_id = service.submit(spec)
    service.run(until=lambda message: service.messages[0].task == TaskName.TRAIN)
    service.context.stopping = True
    given_back = service.step().argument
    with service.database.read() as s:
        assert assignments.get(s, given_back).state == AssignmentState.PENDING
    assert runs(service) == []
    assert [message.task for message in service.messages].count(
        TaskName.TRAIN
    ) == 1  # one at a time; this one waits its turn
    service.context, service.presence = service.new_context(), service.new_presence()
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)


def test_a_worker_that_stops_leaves_its_evaluation_to_another(service: Service, plain_spec: SpecFactory) -> None:
    experiment_id = service.submit(plain_spec(rounds=1))
    service.run(until=lambda message: service.messages[0].task == TaskName.EVALUATE)
    service.context.stopping = True
    assert service.step().argument == experiment_id
    assert runs(service) == []
    assert (TaskName.EVALUATE, experiment_id) in [(message_.task, message_.argument) for message_ in service.messages]
    with service.database.read() as s:
        assert metrics.by_round(s, experiment_id, [0]) == {}


def test_work_that_was_taken_away_is_no_strike(service: Service, plain_spec: SpecFactory, replace: Any) -> None:
    experiment_id = service.submit(plain_spec())
    service.run(until=lambda message: message.task == TaskName.COORDINATE)
    for code in ("lease.lost", "round.closed", "experiment.conflict"):
        replace(TaskName.COORDINATE, raising(FerretError(code, "too late")))
        service.perform(TaskName.COORDINATE, experiment_id)
        assert runs(service) == []


def test_what_a_task_logs_carries_what_it_is_about(service: Service, plain_spec: SpecFactory, replace: Any) -> None:
    found: list[dict[str, Any]] = []
    replace(TaskName.TRAIN, lambda *_: found.append(dict(get_contextvars())))
    experiment_id = service.submit(plain_spec())
    service.run(until=lambda message: message.task == TaskName.TRAIN)
    assert found[0].pop("participant") in {"client-001", "client-002", "client-003"}
    assert found == [
        {"worker": service.presence.who.id, "task": "ferret.train", "experiment": experiment_id, "round": 1}
    ]
    assert get_contextvars() == {}
