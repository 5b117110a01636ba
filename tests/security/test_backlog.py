"""A thousand experiments wait: the queues stay short, sweeps write little, and submissions go on."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, select, update

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import RoundState
from ferret_core.protocol.task_names import QUEUE_OF, Queue, TaskName
from ferret_db.database import Database
from ferret_db.engine import lifecycle, task_attempts
from ferret_db.engine.reconcile import reconcile
from ferret_db.repositories import events, experiments, outbox, rounds
from ferret_db.repositories.outbox import BATCH
from ferret_db.repositories.workers import WorkerIdentity
from ferret_db.tables import OutboxMessage
from ferret_worker import coordinate

PLACES = 4
SPEC = {
    "name": "one of many",
    "model": {"source": "models/toy"},
    "dataset": {"name": "gsm8k", "path": "data"},
    "participants": {"simulated": 3},
}


class Broker:
    """Two queues of messages that nobody takes unless told to."""

    def __init__(self) -> None:
        self.messages: list[tuple[TaskName, str, str]] = []

    def send(self, messages: list[OutboxMessage]) -> None:
        self.messages += [(message.task, message.argument, message.experiment_id) for message in messages]

    def drained(self) -> set[Queue]:
        return set(Queue) - {QUEUE_OF[task] for task, *_ in self.messages}

    def per_experiment(self) -> int:
        """The most messages that one experiment has in both queues."""
        return max(Counter(experiment for *_, experiment in self.messages).values(), default=0)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def url(tmp_path: Path, migrated: Path) -> str:
    shutil.copyfile(migrated, tmp_path / "ferret.db")
    return f"sqlite:///{tmp_path}/ferret.db"


@pytest.fixture
def database(url: str, broker: Broker) -> Iterator[Database]:
    database = Database(url, broker.send, PLACES)
    yield database
    database.dispose()


def submit(database: Database, number: int, **changes: Any) -> list[str]:
    """The ids of so many queued experiments, in order."""
    spec = ExperimentSpec.model_validate({**SPEC, **changes})
    with database.begin() as s:
        return [lifecycle.submit(s, spec)[0].id for _ in range(number)]


def start(database: Database, *experiment_ids: str) -> None:
    for experiment_id in experiment_ids:
        with database.begin() as s:
            lifecycle.start(s, experiment_id, "ba" * 32, {"a": [4]}, [])


def open_round(database: Database, experiment_id: str) -> None:
    start(database, experiment_id)
    with database.begin() as s:
        coordinate.advance(s, experiment_id)


def train(database: Database, broker: Broker, number: int) -> list[str]:
    """Lets a worker take so many trainings, in the order of the queue; whose they were."""
    who, taken = WorkerIdentity("train-1", Queue.TRAIN, "host", 1, "cpu"), list[str]()
    broker.messages = [message for message in broker.messages if message[0] == TaskName.TRAIN]
    while len(taken) < number:
        task, argument, experiment_id = broker.messages.pop(0)
        with database.begin() as s:
            assert task_attempts.begin(s, task, argument, who, strikes=3) is not None
        taken.append(experiment_id)
    return taken


def age(database: Database, column: str = "sent_at") -> None:
    """What was sent, or taken, was so an hour ago."""
    with database.begin() as s:
        long_ago = database.now(s) - timedelta(hours=1)
        s.execute(update(OutboxMessage).where(getattr(OutboxMessage, column).is_not(None)).values({column: long_ago}))


@contextmanager
def rows_written() -> Generator[list[int]]:
    """How many rows each transaction of the block changed, on SQLite."""
    before, written = dict[int, int](), list[int]()

    def begun(connection: Connection) -> None:
        raw: Any = connection.connection.dbapi_connection
        before[id(raw)] = raw.total_changes

    def committed(connection: Connection) -> None:
        raw: Any = connection.connection.dbapi_connection
        written.append(raw.total_changes - before[id(raw)])

    event.listen(Engine, "begin", begun)
    event.listen(Engine, "commit", committed)
    try:
        yield written
    finally:
        event.remove(Engine, "begin", begun)
        event.remove(Engine, "commit", committed)


def test_a_thousand_queued_experiments_have_no_more_messages_than_places(database: Database, broker: Broker) -> None:
    ids = submit(database, 1000)
    for _ in range(5):
        reconcile(database, lease_seconds=0.001, drained=broker.drained())
    assert broker.messages == [(TaskName.COORDINATE, id, id) for id in ids[:PLACES]]


def test_they_start_in_the_order_of_their_submission_as_places_become_free(database: Database, broker: Broker) -> None:
    ids = submit(database, 10)
    start(database, *ids[:PLACES])
    for over, following in zip(ids, ids[PLACES:], strict=False):
        broker.messages.clear()
        with database.begin() as s:
            lifecycle.cancel(s, over)
        assert [argument for *_, argument in broker.messages] == [following]
        start(database, following)


def test_trainings_are_shared_by_priority(database: Database, broker: Broker) -> None:
    large, small = [*submit(database, 1, participants={"simulated": 200}), *submit(database, 1)]
    with database.begin() as s:
        experiments.change(s, small, priority=3)
    open_round(database, large)
    open_round(database, small)
    trainings = [message for message in broker.messages if message[0] == TaskName.TRAIN]
    assert Counter(experiment for *_, experiment in trainings) == {large: 1, small: 3}
    done = train(database, broker, 8)
    assert done == [large, small, small, small, large, large, large, large], "turns by priority, then what is left"


def test_a_priority_that_is_raised_counts_at_once(database: Database, broker: Broker) -> None:
    (experiment_id,) = submit(database, 1, participants={"simulated": 20})
    open_round(database, experiment_id)
    train(database, broker, 2)
    assert broker.per_experiment() == 1
    with database.begin() as s:
        experiments.change(s, experiment_id, priority=4)
        outbox.touch(s, experiment_id)
    assert broker.per_experiment() == 4


def test_real_participants_wait_for_no_place(database: Database, broker: Broker) -> None:
    submit(database, PLACES + 1)
    (real,) = submit(database, 1, participants={"edge": 2})
    assert broker.messages[-1] == (TaskName.COORDINATE, real, real)


def test_a_call_that_waits_is_not_made_again(database: Database, broker: Broker) -> None:
    (experiment_id,) = submit(database, 1)
    for task in (TaskName.EVALUATE, TaskName.REPAIR, TaskName.COORDINATE, TaskName.REPAIR):
        with database.begin() as s:
            outbox.add(s, task, experiment_id)
    assert broker.per_experiment() == 1, "one of each experiment and queue is at the broker"
    who = WorkerIdentity("aggregate-1", Queue.AGGREGATE, "host", 1, "cpu")
    done = list[TaskName]()
    while broker.messages:
        task, argument, _ = broker.messages.pop(0)
        with database.begin() as s:
            assert task_attempts.begin(s, task, argument, who, strikes=3) is not None
        with database.begin() as s:
            task_attempts.done(s, task, argument, who)
        done.append(task)
        assert broker.per_experiment() <= 1
    assert sorted(done) == sorted([TaskName.COORDINATE, TaskName.EVALUATE, TaskName.REPAIR])


def test_no_transaction_of_a_sweep_writes_more_than_a_batch(url: str, broker: Broker) -> None:
    database = Database(url, broker.send)
    for _ in range(5):
        submit(database, 200)
    broker.messages.clear()  # all is lost at once
    age(database)
    with rows_written() as written:
        reconcile(database, drained=broker.drained())
    with database.begin() as s:
        s.execute(update(OutboxMessage).values(received_at=database.now(s)))
    age(database, "received_at")  # every message was taken, and nothing came of it
    with rows_written() as later:
        reconcile(database, drained=broker.drained())
    database.dispose()
    assert sum(written) >= 2000
    assert sum(later) >= 2000
    assert max(written + later) <= BATCH


def test_a_round_of_thousands_opens_in_small_transactions(database: Database, broker: Broker) -> None:
    (experiment_id,) = submit(database, 1, participants={"simulated": 3000})
    start(database, experiment_id)
    with rows_written() as written:
        with database.begin() as s:
            coordinate.advance(s, experiment_id)
        coordinate.open_announced(database, experiment_id)
    assert sum(written) >= 3000
    assert max(written) <= coordinate.OPENED_AT_ONCE
    with database.read() as s:
        (round_,) = rounds.in_states(s, experiment_id, RoundState.OPEN)
        assert rounds.summary(s, experiment_id, 1).participants == 3000
        assert events.after(s, experiment_id, 0, 100)[-1].type == "round.opened"
    assert (round_.required_contributions, round_.population) == (3000, None)
    assert [task for task, *_ in broker.messages].count(TaskName.TRAIN) == 1, "one after the other"


@pytest.mark.parametrize("end", [lifecycle.cancel, lifecycle.pause], ids=["over", "paused"])
def test_a_place_that_becomes_free_is_the_highest_prioritys(database: Database, broker: Broker, end: Any) -> None:
    ids = submit(database, PLACES + 2)
    with database.begin() as s:
        experiments.change(s, ids[-1], priority=2)
    start(database, *ids[:PLACES])
    broker.messages.clear()
    with database.begin() as s:
        end(s, ids[0])
    assert broker.messages == [(TaskName.COORDINATE, ids[-1], ids[-1])]


def test_messages_of_a_cancelled_or_deleted_experiment_do_not_pile_up(database: Database, broker: Broker) -> None:
    for _ in range(20):
        (experiment_id,) = submit(database, 1)
        with database.begin() as s:
            lifecycle.cancel(s, experiment_id)
            lifecycle.delete(s, experiment_id)
    with database.read() as s:
        assert s.scalars(select(OutboxMessage)).all() == []
