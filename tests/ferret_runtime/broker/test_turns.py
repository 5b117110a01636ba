"""Experiments take turns: one of a thousand clients keeps another of four waiting for no longer than
one training each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kombu.connection import Connection
from kombu.entity import Queue as Declared

from ferret_api.broker import Broker
from ferret_cli.stack import broker as embedded
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.database import Database
from ferret_db.engine import lifecycle, task_attempts
from ferret_db.repositories import assignments, rounds
from ferret_db.repositories.workers import WorkerIdentity
from ferret_worker import coordinate

pytestmark = pytest.mark.redis
WORKER = WorkerIdentity("train-1", Queue.TRAIN, "host", 1, "cpu")


@pytest.fixture
def url(tmp_path: Path, need: Callable[[bool, str], None]) -> Iterator[str]:
    """An empty broker's."""
    need(embedded.find_program() is not None, "a broker: apt-get install redis-server")
    own = embedded.prepare(tmp_path)
    own.child.start()
    yield own.url
    own.child.kill()


@pytest.fixture
def broker(url: str) -> Iterator[Broker]:
    broker = Broker(url)
    yield broker
    broker.close()


@pytest.fixture
def database(broker: Broker, tmp_path: Path, migrated: Path) -> Iterator[Database]:
    shutil.copyfile(migrated, tmp_path / "ferret.db")
    database = Database(f"sqlite:///{tmp_path}/ferret.db", broker.send)
    yield database
    database.dispose()


def running(database: Database, clients: int) -> str:
    """An experiment whose first round is open."""
    spec = {
        "name": "toy",
        "model": {"source": "models/toy"},
        "dataset": {"name": "gsm8k", "path": "data"},
        "participants": {"simulated": clients},
    }
    with database.begin() as s:
        experiment_id = lifecycle.submit(s, ExperimentSpec.model_validate(spec))[0].id
    with database.begin() as s:
        lifecycle.start(s, experiment_id, "ba" * 32, {"a": [4]}, [])
    with database.begin() as s:
        coordinate.advance(s, experiment_id)
    coordinate.open_announced(database, experiment_id)
    return experiment_id


def trained(database: Database, url: str, count: int) -> list[str]:
    """Whose the next ``count`` trainings are that a worker takes, one after the other."""
    found = list[str]()
    with Connection(url) as connection:
        waiting = Declared(str(Queue.TRAIN))(connection.default_channel)
        while len(found) < count:
            message = waiting.get(no_ack=True, accept=["json"])
            assert message is not None, found
            (assignment_id,), *_ = message.payload
            with database.begin() as s:
                assert task_attempts.begin(s, TaskName.TRAIN, assignment_id, WORKER, strikes=3)
                found.append(rounds.get(s, assignments.get(s, assignment_id).round_id).experiment_id)
    return found


def test_every_second_training_is_the_small_experiments(url: str, broker: Broker, database: Database) -> None:
    large, small = running(database, 1000), running(database, 4)
    assert (broker.lengths() or {})[Queue.TRAIN] == 2, "of each experiment there is one"
    assert trained(database, url, 12) == [large, small] * 4 + [large] * 4
