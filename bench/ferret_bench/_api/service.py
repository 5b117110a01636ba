"""The API as a process of its own, with a broker, on a database that is there already."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from ferret_cli.stack import broker
from ferret_core.protocol.errors import FerretError

START_SECONDS = 60
LEASE_SECONDS = 600


class Service(NamedTuple):
    """Where it listens, and its process."""

    port: int
    pid: int
    log: Path

    @property
    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def cpu_seconds(self) -> float:
        """Of user and system, proc(5)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(home: Path, database_url: str) -> Generator[Service]:
    """With its files under ``home``."""
    home.mkdir(parents=True)
    with ExitStack() as started:
        prepared = broker.prepare(home)
        started.enter_context(_running(prepared.child.command, {}, home / "broker.log"))
        environment = {
            "FERRET_HOME": str(home),
            "FERRET_DATABASE_URL": database_url,
            "FERRET_BROKER_URL": prepared.url,
            "FERRET_LEASE_SECONDS": str(LEASE_SECONDS),
            "FERRET_ALLOWED_HOSTS": "*",
        }
        log = home / "api.log"
        command = [sys.executable, "-P", "-m", "ferret_api", "--port", "0"]
        process = started.enter_context(_running(command, environment, log))
        yield Service(_port(process, log), process.pid, log)


@contextmanager
def _running(command: Sequence[str], environment: dict[str, str], log: Path) -> Generator[subprocess.Popen[bytes]]:
    with log.open("wb") as said:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=said, stderr=said)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if (found := re.search(r"listens on http://127\.0\.0\.1:(\d+)", log.read_text())) and _ready(int(found[1])):
            return int(found[1])
        time.sleep(0.1)
    raise FerretError("server.not_ready", f"the API said: {log.read_text()[-1000:]}")


def _ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
