"""The API in several processes, with a broker, on an existing database."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ferret_bench.base import Say
from ferret_bench.measure.memory import resident_bytes
from ferret_cli.stack import broker, ports
from ferret_cli.stack.probe import wait_until_ready
from ferret_cli.stack.stack import api_process
from ferret_cli.stack.supervisor import Supervisor

HOST = "127.0.0.1"
LEASE_SECONDS = 600


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


@contextmanager
def serving(home: Path, database_url: str, processes: int, say: Say) -> Generator[Service]:
    """Starts the API's processes and a broker on an existing database, without workers, with files under ``home``.

    Raises ``internal`` with the log of a process that ends.
    """
    home.mkdir(parents=True)
    port, supervisor = ports.free_port(HOST), Supervisor(say)
    with ExitStack() as started:
        listener = started.enter_context(ports.listening(HOST, port))
        own = broker.prepare(home)
        environment = {
            "FERRET_HOME": str(home),
            "FERRET_DATABASE_URL": database_url,
            "FERRET_BROKER_URL": own.url,
            "FERRET_LEASE_SECONDS": str(LEASE_SECONDS),
            "FERRET_ALLOWED_HOSTS": "*",
        }
        apis = [api_process(home, environment, listener, f"api-{number}") for number in range(processes)]
        for child in (own.child, *apis):
            started.callback(child.kill)
            supervisor.start(child)
        wait_until_ready(HOST, port, supervisor.require_running)
        yield Service(port, tuple(child.pid for child in apis if child.pid is not None))


def _cpu_seconds(pid: int) -> float:
    """Returns user and system seconds, proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
