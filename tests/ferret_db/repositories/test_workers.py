"""Who is alive, and what it works on."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.database import Database
from ferret_db.repositories import workers
from ferret_db.repositories.workers import WorkerIdentity
from ferret_db.tables import TaskRun, Worker

pytestmark = pytest.mark.about_database

TRAIN = WorkerIdentity("train-host-7-a1", Queue.TRAIN, "host", 7, "cuda")
AGGREGATE = WorkerIdentity("aggregate-host-8-b2", Queue.AGGREGATE, "host", 8, "cpu")


def rows(database: Database) -> dict[str, Worker]:
    with database.read() as s:
        return {row.id: row for row in s.scalars(select(Worker))}


def test_a_sign_of_life_is_noted_with_the_work_it_comes_from(database: Database) -> None:
    with database.begin() as s:
        workers.seen(s, TRAIN)
    first = rows(database)[TRAIN.id]
    assert (first.queue, first.host, first.pid, first.device, first.task) == (Queue.TRAIN, "host", 7, "cuda", None)
    with database.begin() as s:
        workers.seen(s, TRAIN, TaskName.TRAIN, "asg_1")
    second = rows(database)[TRAIN.id]
    assert (second.task, second.subject, second.started_at) == (TaskName.TRAIN, "asg_1", first.started_at)
    assert second.seen_at >= first.seen_at
    with database.begin() as s:
        workers.seen(s, TRAIN)
    assert rows(database)[TRAIN.id].subject is None


def test_the_living_are_counted_by_queue(database: Database, lab: Any) -> None:
    with database.read() as s:
        assert workers.counts(s) == dict.fromkeys(Queue, 0)
        assert workers.last_seen(s, Queue.TRAIN) is None
    with database.begin() as s:
        workers.seen(s, TRAIN, TaskName.TRAIN, "asg_1")
        workers.seen(s, AGGREGATE)
    with database.read() as s:
        assert workers.counts(s) == {Queue.TRAIN: 1, Queue.AGGREGATE: 1, Queue.PLAYGROUND: 0}
    lab.age(Worker, "seen_at", 20, Worker.id == TRAIN.id)
    with database.read() as s:
        assert (workers.alive(s, Queue.TRAIN), workers.alive(s, Queue.AGGREGATE)) == (0, 1)
        assert workers.alive(s, Queue.TRAIN, seconds=3600) == 1
        assert workers.last_seen(s, Queue.TRAIN) == rows(database)[TRAIN.id].seen_at


def test_the_long_gone_are_forgotten_and_the_leaving_at_once(database: Database, lab: Any) -> None:
    with database.begin() as s:
        workers.seen(s, TRAIN)
        workers.seen(s, AGGREGATE)
    lab.age(Worker, "seen_at", 3700, Worker.id == TRAIN.id)
    with database.begin() as s:
        workers.forget(s, 3600)
    assert list(rows(database)) == [AGGREGATE.id]
    with database.begin() as s:
        workers.leave(s, AGGREGATE.id)
    assert rows(database) == {}


def test_a_worker_is_not_waited_for_longer_than_half_a_lease() -> None:
    assert (workers.gone_after(60), workers.gone_after(4)) == (15, 2)


def test_all_that_are_not_forgotten_are_told_with_the_experiment_they_work_for(database: Database) -> None:
    with database.begin() as s:
        workers.seen(s, TRAIN, TaskName.TRAIN, "asg_1")
        workers.seen(s, AGGREGATE)
        s.add(TaskRun(task=TaskName.TRAIN, argument="asg_1", experiment_id="exp_1", worker=TRAIN.id))
        s.add(TaskRun(task=TaskName.TRAIN, argument="asg_2", experiment_id="exp_2"))
    with database.read() as s:
        assert [(worker.id, experiment) for worker, experiment in workers.known(s)] == [
            (AGGREGATE.id, None),
            (TRAIN.id, "exp_1"),
        ]
