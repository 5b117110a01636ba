"""Real worker processes on a private broker, which tests kill and start again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from ferret_cli.stack import broker
from ferret_cli.stack.child import Child
from ferret_core import catalog
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.task_names import Queue
from ferret_db import migrate
from ferret_db.database import Database
from ferret_db.engine import lifecycle, stalls
from ferret_db.repositories import experiments
from ferret_db.tables import Experiment, Worker
from ferret_worker.settings import WorkerSettings
from tests.network_namespaces import Host

PATIENCE_SECONDS = 400.0
"""Longer than anything takes that ends at all; the tests wait for what happens, never for time to pass."""


class Fleet:
    """One broker and the workers of one database. ``lease_seconds`` is long enough for a machine that is busy."""

    def __init__(self, home: Path, database_url: str, lease_seconds: float = 10.0) -> None:
        self.home = home
        self.broker = broker.prepare(home)
        self.environment = {
            "FERRET_HOME": str(home),
            "FERRET_DATABASE_URL": database_url,
            "FERRET_BROKER_URL": self.broker.url,
            "FERRET_LEASE_SECONDS": str(lease_seconds),
            "FERRET_RECONCILE_SECONDS": "0.5",
            "FERRET_LOG_FORMAT": "json",
            "FERRET_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
        }
        self.children: dict[str, Child] = {}
        migrate.upgrade(database_url)
        self.database = Database(database_url)  # the workers' reconcilers send its messages
        self.broker.child.start()

    def start(
        self,
        queue: Queue,
        program: str = "from ferret_worker.__main__ import main",
        host: Host | None = None,
        **environment: str,
    ) -> Child:
        """A worker on ``queue``, on a ``host`` or on this machine; ``program`` is Python that defines its ``main``."""
        name = f"{queue}-{len(self.children)}"
        command = [sys.executable, "-P", "-c", f"import sys\n{program}\nsys.exit(main([{str(queue)!r}]))"]
        return self.run(name, host.command(command) if host else command, **environment)

    def run(self, name: str, command: list[str], **environment: str) -> Child:
        """Any process of the service."""
        child = Child(name, command, self.home / "logs" / f"{name}.log", {**self.environment, **environment})
        child.start()
        self.children[name] = child
        return child

    def terminate(self, child: Child) -> None:
        """SIGTERM."""
        self._signal(child, signal.SIGTERM)

    def quit(self, child: Child) -> None:
        """SIGQUIT."""
        self._signal(child, signal.SIGQUIT)

    def _signal(self, child: Child, number: signal.Signals) -> None:
        assert child.pid is not None
        os.kill(child.pid, number)

    def stop(self) -> None:
        for child in (*self.children.values(), self.broker.child):
            child.kill()
        self.database.dispose()

    def submit(self, spec: ExperimentSpec) -> str:
        with self.database.begin() as s:
            return lifecycle.submit(s, catalog.resolve(spec).spec)[0].id

    def experiment(self, experiment_id: str) -> Experiment:
        with self.database.read() as s:
            return experiments.get(s, experiment_id)

    def stalled(self, experiment_id: str) -> str | None:
        """The code of why the experiment stands still."""
        with self.database.read() as s:
            stall = stalls.stall(s, experiments.get(s, experiment_id))
        return stall.code if stall else None

    def workers(self) -> dict[int, Worker]:
        """Those that the database knows, by their pids."""
        with self.database.read() as s:
            return {row.pid: row for row in s.scalars(select(Worker))}

    def until(self, holds: Callable[[], bool]) -> None:
        """Starts workers again that were killed, until ``holds()``."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            for child in self.children.values():
                if child.exit_code == -signal.SIGKILL:
                    child.start()
            assert time.monotonic() < deadline, self.last_lines()
            time.sleep(0.05)

    def until_finished(self, experiment_id: str) -> Experiment:
        self.until(lambda: self.experiment(experiment_id).state.finished)
        return self.experiment(experiment_id)

    def last_lines(self) -> str:
        return "\n".join(f"{name}:\n{child.last_lines()}" for name, child in self.children.items())

    def lose_broker(self) -> None:
        """Killed, with all that it had written."""
        self.broker.child.kill()
        shutil.rmtree(next(Path(self.home / "broker").glob("*/appendonlydir")))


@pytest.fixture
def fleet(settings: WorkerSettings, need: Callable[[bool, str], None]) -> Iterator[Fleet]:
    need(broker.find_program() is not None, "a broker: apt-get install redis-server")
    fleet = Fleet(settings.home, settings.database_url)
    yield fleet
    fleet.stop()
