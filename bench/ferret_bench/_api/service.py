"""The API's processes with a broker, on an existing database."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ferret_cli.stack import broker
from ferret_core.protocol.errors import FerretError

START_SECONDS = 60
LEASE_SECONDS = 600
BACKLOG = 2048


class Service(NamedTuple):
    """The service's port, and its processes; figures are their sums."""

    port: int
    pids: tuple[int, ...]

    @property
    def resident_bytes(self) -> int:
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.pids)
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_seconds(self) -> float:
        return sum(map(_cpu_seconds, self.pids))


@contextmanager
def serving(home: Path, database_url: str, processes: int) -> Generator[Service]:
    """Starts the service with its files under ``home``."""
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
        command = [sys.executable, "-P", "-m", "ferret_api"]
        logs = [home / f"api-{number}.log" for number in range(processes)]
        running = [started.enter_context(_running(command, environment, log, listener)) for log in logs]
        for process, log in zip(running, logs, strict=True):
            _wait_until_complete(process, log)
        yield Service(listener.getsockname()[1], tuple(process.pid for process in running))


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


def _wait_until_complete(process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until the process accepts connections."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if "Application startup complete" in log.read_text():
            return
        time.sleep(0.1)
    raise FerretError("server.not_ready", f"the API's log: {log.read_text()[-1000:]}")
