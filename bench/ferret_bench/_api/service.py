"""The API in separate processes: several with a broker on an existing database, or one alone on SQLite."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ferret_bench.measure.memory import resident_bytes
from ferret_cli.stack import broker
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_db import migrate
from ferret_db.database import Database
from ferret_db.engine import lifecycle

TOKEN = "a-token-for-the-benchmark"  # noqa: S105 # nosec B105
START_SECONDS = 60
LEASE_SECONDS = 600
BACKLOG = 2048
NO_BROKER = "redis://127.0.0.1:1/0"
COMPLETE = "Application startup complete"
COMMAND = (sys.executable, "-P", "-m", "ferret_api")
SPEC = {
    "name": "followed",
    "rounds": 1,
    "model": {"source": "/nowhere"},
    "dataset": {"name": "jsonl", "train": "/nowhere", "test": "/nowhere"},
    "participants": {"edge": 1},
}


class Service(NamedTuple):
    """The service's port, and its processes; figures are their sums."""

    port: int
    pids: tuple[int, ...]

    @property
    def resident_bytes(self) -> int:
        return sum(map(resident_bytes, self.pids))

    @property
    def cpu_seconds(self) -> float:
        return sum(map(_cpu_seconds, self.pids))


class Api(NamedTuple):
    """An API alone: its port, process and database, and the experiment."""

    port: int
    pid: int
    database: Database
    experiment: str


@contextmanager
def serving(home: Path, database_url: str, processes: int) -> Generator[Service]:
    """Starts the API's processes and a broker on an existing database, with their files under ``home``."""
    home.mkdir(parents=True)
    with ExitStack() as started:
        listener = started.enter_context(socket.create_server(("127.0.0.1", 0), backlog=BACKLOG))
        prepared = broker.prepare(home)
        started.enter_context(_running(prepared.child.command, {}, home / "broker.log"))
        environment = {
            "FERRET_HOME": str(home),
            "FERRET_DATABASE_URL": database_url,
            "FERRET_BROKER_URL": prepared.url,
            "FERRET_LEASE_SECONDS": str(LEASE_SECONDS),
            "FERRET_ALLOWED_HOSTS": "*",
            "FERRET_LISTEN_FD": str(listener.fileno()),
        }
        logs = [home / f"api-{number}.log" for number in range(processes)]
        running = [started.enter_context(_running(COMMAND, environment, log, listener)) for log in logs]
        for process, log in zip(running, logs, strict=True):
            _await_log(process, log, COMPLETE)
        yield Service(listener.getsockname()[1], tuple(process.pid for process in running))


@contextmanager
def alone(home: Path, **settings: str) -> Generator[Api]:
    """Starts the API on SQLite, with one experiment and without a broker; ``settings`` are environment variables."""
    home.mkdir(parents=True)
    url = f"sqlite:///{home}/ferret.db"
    migrate.upgrade(url)
    database = Database(url)
    with database.begin() as s:
        experiment = lifecycle.submit(s, ExperimentSpec.model_validate(SPEC))[0].id
    environment = {
        "FERRET_HOME": str(home),
        "FERRET_DATA_ROOTS": "/",
        "FERRET_ADMIN_TOKEN": TOKEN,
        "FERRET_BROKER_URL": NO_BROKER,
        **settings,
    }
    log = home / "api.log"
    try:
        with _running([*COMMAND, "--port", "0"], environment, log) as process:
            listening = _await_log(process, log, rf"listens on http://127\.0\.0\.1:(\d+)(?s:.*){COMPLETE}")
            yield Api(int(listening[1]), process.pid, database, experiment)
    finally:
        database.dispose()


def _cpu_seconds(pid: int) -> float:
    """Returns user and system seconds, proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _running(
    command: Sequence[str], environment: dict[str, str], log: Path, *inherited: socket.socket
) -> Generator[subprocess.Popen[bytes]]:
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdout=said,
            stderr=said,
            pass_fds=[opened.fileno() for opened in inherited],
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _await_log(process: subprocess.Popen[bytes], log: Path, pattern: str) -> re.Match[str]:
    """Waits for the line with which the API accepts connections."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(pattern, log.read_text()):
            return found
        time.sleep(0.1)
    raise FerretError("server.not_ready", f"the API's log: {log.read_text()[-1000:]}")
