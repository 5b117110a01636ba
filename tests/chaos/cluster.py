"""The service's real processes, each of which may be killed at any moment and is started again at once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis

from ferret_bench._control import databases
from ferret_cli.stack import broker, stack
from ferret_cli.stack.home_lock import admin_token
from ferret_cli.stack.ports import free_port
from ferret_cli.stack.probe import wait_until_ready
from ferret_cli.stack.supervisor import Supervisor, silent_after
from ferret_core.protocol.task_names import Queue
from ferret_db import migrate
from ferret_sdk.service.service import Service

LEASE_SECONDS = 10.0
SETTINGS = {
    "FERRET_LEASE_SECONDS": str(LEASE_SECONDS),
    "FERRET_RECONCILE_SECONDS": "1",
    "FERRET_MIN_PARTICIPANTS": "1",  # one real participant takes part, whose ledger is read
    "FERRET_EXPECTED_PARTICIPANTS": "40",
    "FERRET_TASK_MAX_ATTEMPTS": "1000000",  # a task whose workers are killed by hand is no poison
    "FERRET_THREADS": "1",  # bits are equal at equal thread counts
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONUNBUFFERED": "1",
}
KEPT = {databases.SETTING}
COPIES = {Queue.TRAIN: 2, Queue.AGGREGATE: 2}
PATIENCE_SECONDS = 60.0


class Cluster:
    """A broker, an API, two workers on each queue, and real participants that join later."""

    def __init__(self, home: Path, database_url: str, say: Callable[[str], None]) -> None:
        self.home = home
        self.port = free_port()
        self.broker = broker.prepare(home)
        self._environment = {
            **SETTINGS,
            "FERRET_HOME": str(home),
            "FERRET_DATA_ROOTS": "/",
            "FERRET_HOST": "127.0.0.1",
            "FERRET_PORT": str(self.port),
            "FERRET_DATABASE_URL": database_url,
            "FERRET_BROKER_URL": self.broker.url,
        }
        api = stack.api_process(home, self._environment)
        self.children = {"broker": self.broker.child, "api": api}
        for queue in COPIES:
            for name in self.workers(queue):
                self.children[name] = stack.worker_process(home, name, str(queue), self._environment)
        # Without the pauses that keep a process that crashes at start from doing nothing else.
        self._supervisor = Supervisor(say, pause=0, silent=silent_after(LEASE_SECONDS))

    @property
    def service(self) -> Service:
        """A client of the API."""
        return Service(f"http://127.0.0.1:{self.port}", admin_token(self.home))

    def workers(self, queue: Queue) -> list[str]:
        """The names of those that take work from ``queue``."""
        return [f"{queue}-{number}" for number in range(1, COPIES[queue] + 1)]

    def join(self, process: str, name: str, code: str, data: Path) -> None:
        """Starts a real participant called ``name``, as its owner does; ``process`` is what it is killed by."""
        arguments = [f"http://127.0.0.1:{self.port}", "--data", str(data), "--name", name, "--yes"]
        own = {"FERRET_CODE": code, "FERRET_HOME": str(self.home / process)}
        self.children[process] = child = stack.participant_process(
            self.home, process, arguments, self._environment | own
        )
        self._supervisor.start(child)

    def start(self) -> None:
        """Starts everything and waits until it is ready."""
        for child in self.children.values():
            self._supervisor.start(child)
        wait_until_ready("127.0.0.1", self.port, self.supervise)

    def stop(self) -> None:
        """Kills everything: there is nothing left to be polite for."""
        for child in self.children.values():
            child.kill()

    def supervise(self) -> None:
        """One look of the supervisor, as ``ferret serve`` has it: what was killed or hangs is replaced."""
        self._supervisor.supervise()

    def kill(self, name: str) -> None:
        """SIGKILL, to the process and all it has started."""
        self.children[name].kill()

    def hang(self, name: str) -> int | None:
        """SIGSTOP, to the process and all it has started; its pid, or None if it has ended just now."""
        pid = self.children[name].pid
        if pid is None or self.children[name].exit_code is not None:
            return None
        os.killpg(pid, signal.SIGSTOP)
        return pid

    def flush_broker(self) -> None:
        """FLUSHALL: every message and every acknowledgement that is due is gone."""
        with redis.Redis.from_url(self.broker.url, socket_timeout=2) as client:
            self._patiently(client.flushall, redis.RedisError)

    def _patiently(self, act: Callable[[], object], error: type[Exception]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                act()
                return
            except error:
                if time.monotonic() > deadline:
                    raise
                self.supervise()
                time.sleep(0.05)


@contextmanager
def running(home: Path, database_url: str, say: Callable[[str], None]) -> Generator[Cluster]:
    """A cluster on a migrated database, ready to be talked to; nothing of it is left afterwards."""
    for name in [name for name in os.environ if name.startswith("FERRET_") and name not in KEPT]:
        del os.environ[name]  # what its processes would inherit
    migrate.upgrade(database_url)
    cluster = Cluster(home, database_url, say)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def terminate_sessions(server: str, database: str) -> int:
    """Cuts every connection to ``database`` of the PostgreSQL ``server``; how many there were."""
    with psycopg.connect(server, autocommit=True) as connection:
        sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        return len(connection.execute(sessions, [database]).fetchall())
