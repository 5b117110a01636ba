"""A worker is seen for as long as it lives, whatever it does and whatever becomes of the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.repositories import workers
from ferret_db.tables import Worker
from ferret_worker.worker_heartbeat import WorkerHeartbeat, identity

Service = Any  # tests/worker/conftest.py
PATIENCE_SECONDS = 60


@pytest.fixture
def presence(service: Service) -> Iterator[WorkerHeartbeat]:
    presence = WorkerHeartbeat(service.database, identity(Queue.TRAIN, "cpu"), seconds=0.01)
    yield presence
    presence.stop()


def row(service: Service) -> Worker | None:
    with service.database.read() as s:
        return s.scalars(select(Worker)).one_or_none()


def wait_for(service: Service, **expected: Any) -> Worker:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := row(service)) is None or any(getattr(found, name) != value for name, value in expected.items()):
        assert time.monotonic() < deadline, found
        time.sleep(0.01)
    return found


def test_it_says_what_it_works_on(service: Service, presence: WorkerHeartbeat) -> None:
    presence.say()
    assert row(service).task is None
    with presence.at(TaskName.TRAIN, "asg_1"):
        presence.say()
        found = row(service)
        assert (found.id, found.task, found.subject) == (presence.who.id, TaskName.TRAIN, "asg_1")
    presence.say()
    assert (row(service).task, row(service).subject) == (None, None)


def test_it_says_so_by_itself_and_mends_what_was_noted_wrongly(service: Service, presence: WorkerHeartbeat) -> None:
    presence.start()
    first = wait_for(service, task=None)
    with service.database.begin() as s:
        workers.seen(s, presence.who, TaskName.TRAIN, "asg_1")  # whose end could not be noted
    assert wait_for(service, task=None).started_at == first.started_at
    with presence.at(TaskName.TRAIN, "asg_2"):
        wait_for(service, subject="asg_2")


def test_a_database_that_is_away_for_the_moment_does_not_silence_it(
    service: Service, presence: WorkerHeartbeat, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen, failures = workers.seen, [ConnectionError("gone"), ConnectionError("still gone")]

    def failing(*args: Any) -> None:
        if failures:
            raise failures.pop()
        seen(*args)

    monkeypatch.setattr(workers, "seen", failing)
    presence.start()
    wait_for(service, task=None)
    assert caplog.text.count("could not report to the database that this worker is alive") == 2


def test_who_ends_is_not_seen_any_more(service: Service) -> None:
    presence = WorkerHeartbeat(service.database, identity(Queue.TRAIN, "cpu"), seconds=3600)
    presence.say()
    presence.start()
    presence.stop()
    assert row(service) is None


def test_a_process_that_is_started_again_under_its_pid_is_another() -> None:
    first, second = identity(Queue.TRAIN, "cpu"), identity(Queue.TRAIN, "cpu")
    assert first.id != second.id
    assert first.id.startswith(f"train-{first.host}-{first.pid}-")
