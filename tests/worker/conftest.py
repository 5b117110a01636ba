"""The workers' tasks on a real database and storage; only the broker is a list, emptied in order."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, ColumnElement, Interval, func, literal, update
from sqlalchemy.orm import Session

from ferret_core import catalog
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.task_names import QUEUE_OF, Queue, TaskName
from ferret_core.storage import open_storage
from ferret_db import migrate
from ferret_db.clock import UtcDateTime
from ferret_db.database import Database
from ferret_db.engine import lifecycle, task_attempts
from ferret_db.repositories import experiments, task_runs
from ferret_db.tables import Assignment, Base, Experiment, OutboxMessage, Worker
from ferret_worker.reconcile import reconcile
from ferret_worker.settings import WorkerSettings
from ferret_worker.task_runner import perform
from ferret_worker.worker_heartbeat import WorkerHeartbeat, identity
from ferret_worker.worker_state import WorkerState
from tests.tiers import EITHER_DATABASE


class Service:
    """Two worker processes' worth of state in one, driven message by message."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.messages: deque[OutboxMessage] = deque()
        self.settings = settings
        migrate.upgrade(self.settings.database_url)
        self.database = Database(self.settings.database_url, self.messages.extend)
        self.context = self.new_context()
        self.presence = self.new_presence()
        self.idle = self.new_presence(Queue.TRAIN)

    def new_context(self) -> WorkerState:
        """What a freshly started worker holds."""
        return WorkerState(self.settings, self.database, open_storage(self.settings.storage_url))

    def new_presence(self, queue: Queue = Queue.AGGREGATE) -> WorkerHeartbeat:
        """Another process, as the others see it; it says something only when a task begins or ends."""
        return WorkerHeartbeat(self.database, identity(queue, "cpu"), seconds=5)

    def submit(self, spec: ExperimentSpec) -> str:
        with self.database.begin() as s:
            return lifecycle.submit(s, catalog.resolve(spec).spec)[0].id

    def step(self) -> OutboxMessage:
        """Runs the oldest message's task."""
        message = self.messages.popleft()
        self.perform(message.task, message.argument)
        return message

    def perform(self, task: TaskName, argument: str) -> None:
        """What a worker does on a message."""
        perform(self.context, self.presence, task, argument)

    def run(self, until: Callable[[OutboxMessage], bool] = lambda message: False) -> None:
        """Runs tasks until none is left, or one that matches has run."""
        while self.messages:
            if until(self.step()):
                return

    def lose_worker(self) -> None:
        """All workers that are at a task have not been seen for long, and a reconciler calls for what they had."""
        with self.database.begin() as s:
            long_ago = self.database.now(s) - timedelta(seconds=60)
            s.execute(update(Worker).where(Worker.task.is_not(None)).values(seen_at=long_ago))
        with self.database.read() as s:
            orphaned = task_runs.orphaned(s)
        for run in orphaned:
            with self.database.begin() as s:
                task_attempts.recover(s, run)

    def lose_lease(self, assignment_id: str) -> None:
        """The lease has run out."""
        with self.database.begin() as s:
            ended = self.database.now(s) - timedelta(seconds=1)
            s.execute(update(Assignment).where(Assignment.id == assignment_id).values(lease_until=ended))

    def later(self, seconds: float = 120) -> None:
        """So much time has passed: every moment in the database lies as much further back. Then all is reconciled,
        while a worker for training has nothing to do."""
        with self.database.begin() as s:
            for table in Base.metadata.sorted_tables:
                times = [column for column in table.columns if isinstance(column.type, UtcDateTime)]
                if times:
                    s.execute(update(table).values({column: _earlier(s, column, seconds) for column in times}))
        self.idle.say()
        waiting = {QUEUE_OF[message.task] for message in self.messages}
        reconcile(self.context, drained=set(Queue) - waiting)

    def experiment(self, experiment_id: str) -> Experiment:
        with self.database.read() as s:
            return experiments.get(s, experiment_id)


def _earlier(s: Session, column: Column[Any], seconds: float) -> ColumnElement[Any]:
    if s.get_bind().dialect.name == "sqlite":
        return func.strftime("%Y-%m-%d %H:%M:%f000", column, f"-{seconds} seconds", type_=column.type)
    return column - literal(timedelta(seconds=seconds), Interval())


def usually_on(database: str) -> pytest.MarkDecorator:
    """On this database, and in ``make test-all`` on the other one too: for what is the same on either."""
    marks = {"sqlite": [], "postgresql": [pytest.mark.postgresql]}
    cases = [
        pytest.param(name, marks=own if name == database else [*own, pytest.mark.slow]) for name, own in marks.items()
    ]
    return pytest.mark.parametrize("settings", cases, indirect=True)


@pytest.fixture(params=EITHER_DATABASE)
def settings(
    request: pytest.FixtureRequest, tmp_path: Path, migrated: Path, postgresql: Any
) -> Iterator[WorkerSettings]:
    home = tmp_path / "home"
    if request.param == "sqlite":
        home.mkdir()
        shutil.copyfile(migrated, home / "ferret.db")
        yield WorkerSettings(home=home)
        return
    with postgresql(migrated=True) as url:
        yield WorkerSettings(home=home, database_url=url)


@pytest.fixture
def plain_spec(toy_spec: Callable[..., ExperimentSpec]) -> Callable[..., ExperimentSpec]:
    """As ``toy_spec``, without training and with little to evaluate."""
    return partial(toy_spec, "toy", evaluation={"examples": 2, "generate_examples": 0})


@pytest.fixture
def service(settings: WorkerSettings) -> Iterator[Service]:
    service = Service(settings)
    yield service
    service.database.dispose()
