"""The workers' tasks on a real database and storage; only the broker is a list, emptied in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ferret_core import catalog
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.storage import open_storage
from ferret_db import migrate
from ferret_db.database import Database
from ferret_db.engine import lifecycle
from ferret_db.repositories import experiments
from ferret_db.tables import Experiment, OutboxMessage
from worker.app import TASKS
from worker.context import Context
from worker.settings import WorkerSettings


class Service:
    """Two worker processes' worth of state in one, driven message by message."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.messages: deque[OutboxMessage] = deque()
        self.settings = settings
        migrate.upgrade(self.settings.database_url)
        self.database = Database(self.settings.database_url, self.messages.extend)
        self.context = self.new_context()

    def new_context(self) -> Context:
        """What a freshly started worker holds."""
        return Context(self.settings, self.database, open_storage(self.settings.storage_url))

    def submit(self, spec: ExperimentSpec) -> str:
        with self.database.begin() as s:
            return lifecycle.submit(s, catalog.resolve(spec))[0].id

    def step(self) -> OutboxMessage:
        """Runs the oldest message's task."""
        message = self.messages.popleft()
        TASKS[message.task](self.context, message.argument)
        return message

    def run(self, until: Callable[[OutboxMessage], bool] = lambda message: False) -> None:
        """Runs tasks until none is left, or one that matches has run."""
        while self.messages:
            if until(self.step()):
                return

    def experiment(self, experiment_id: str) -> Experiment:
        with self.database.read() as s:
            return experiments.get(s, experiment_id)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def settings(request: pytest.FixtureRequest, tmp_path: Path, postgresql: Any) -> Iterator[WorkerSettings]:
    home = tmp_path / "home"
    if request.param == "sqlite":
        yield WorkerSettings(home=home)
        return
    with postgresql() as url:
        yield WorkerSettings(home=home, database_url=url)


@pytest.fixture
def service(settings: WorkerSettings) -> Iterator[Service]:
    service = Service(settings)
    yield service
    service.database.dispose()
