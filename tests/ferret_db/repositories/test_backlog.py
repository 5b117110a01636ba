"""What waits for workers, counted by queue."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db import schema_version
from ferret_db.database import Database, size_in_bytes
from ferret_db.repositories import backlog, outbox
from ferret_db.tables import Assignment, OutboxMessage, TaskRun

pytestmark = pytest.mark.about_database

NOTHING = backlog.Backlog(0, None)


def test_nothing_waits_in_a_fresh_service(database: Database) -> None:
    with database.read() as s:
        assert backlog.backlogs(s) == dict.fromkeys(Queue, NOTHING)
        assert (backlog.unsent(s), backlog.given_up(s)) == (NOTHING, 0)


def test_trainings_wait_from_the_opening_of_their_round_until_a_worker_takes_them(
    database: Database, lab: Any, sent: Any
) -> None:
    sent.taken = False
    round_ = lab.open(lab.start())
    with database.read() as s:
        found = {queue: backlog.waiting for queue, backlog in backlog.backlogs(s).items()}
    # The base model's evaluation waits behind the call that started the experiment.
    assert found == {Queue.TRAIN: 3, Queue.AGGREGATE: 2, Queue.PLAYGROUND: 0}
    lab.age(Assignment, "updated_at", 600, Assignment.round_id == round_.id)
    with database.read() as s:
        oldest = backlog.backlogs(s)[Queue.TRAIN].oldest
        assert oldest is not None
        assert 590 < (database.now(s) - oldest).total_seconds() < 660
        call = s.scalars(select(OutboxMessage).where(OutboxMessage.task == TaskName.TRAIN)).one()
    with database.begin() as s:
        outbox.take(s, call.task, call.argument)
    with database.read() as s:
        assert backlog.backlogs(s)[Queue.TRAIN].waiting == 2


def test_what_the_broker_has_not_got_is_unsent(database: Database, lab: Any, sent: Any) -> None:
    sent.taken = False
    lab.start()
    lab.age(OutboxMessage, "created_at", 60)
    with database.read() as s:
        waiting, oldest = backlog.unsent(s)
        assert waiting == 1
        assert oldest is not None
        assert (database.now(s) - oldest).total_seconds() > 50


def test_an_experiment_that_waits_for_its_turn_is_no_backlog(database: Database, lab: Any, sent: Any) -> None:
    sent.taken = False
    for _ in range(40):
        lab.submit()
    with database.read() as s:
        assert backlog.backlogs(s)[Queue.AGGREGATE].waiting == 0


def test_tasks_that_were_given_up_are_counted(database: Database) -> None:
    with database.begin() as s:
        s.add(TaskRun(task=TaskName.TRAIN, argument="asg_1", given_up_at=database.now(s)))
        s.add(TaskRun(task=TaskName.TRAIN, argument="asg_2"))
    with database.read() as s:
        assert backlog.given_up(s) == 1


def test_a_database_has_a_size_and_a_revision(database: Database) -> None:
    with database.read() as s:
        assert size_in_bytes(s) > 100_000
        assert schema_version.revision(s) == schema_version.HEAD
