"""A ``ferret serve`` as a user starts it, for the length of a block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ferret_bench.measure.memory import resident_bytes
from ferret_cli.stack.ports import free_port
from ferret_core.protocol.errors import FerretError
from ferret_sdk.service.service import Service

STOP_SECONDS = 30
THREADS = 1
"""Threads of each worker. Training has the same bits elsewhere with the same number of threads."""


class Stack(NamedTuple):
    """A running service: a client of its API, and its processes."""

    service: Service
    pid: int

    def resident_bytes(self) -> dict[str, int]:
        """Memory of each process by name; empty without /proc."""
        return {_name(pid): resident_bytes(pid) for pid in _children(self.pid)}


@contextmanager
def serving(
    home: Path,
    database_url: str,
    settings: Mapping[str, str] = MappingProxyType({}),
    options: Sequence[str] = (),
    ca: Path | None = None,
) -> Generator[Stack]:
    """Starts broker, API, one training worker and the aggregation worker. Raises ``server.not_ready`` if they fail.

    ``options`` belong to ``ferret serve``, ``ca`` is the authority of its certificate.
    """
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FERRET_")}
    command = [sys.executable, "-P", "-m", "ferret_cli", "serve", "--home", str(home), "--port", str(free_port())]
    command += options
    with (home / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env={
                **kept,
                "FERRET_DATABASE_URL": database_url,
                "FERRET_THREADS": str(THREADS),
                "HF_HUB_OFFLINE": "1",
                "FERRET_DATA_ROOTS": "/",
                **settings,
            },
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip().partition("/#")[0]
        if not url:
            raise FerretError(
                "server.not_ready", f"the log of ferret serve: {(home / 'serve.log').read_text().strip()}"
            )
        yield Stack(Service(url, (home / "admin.token").read_text().strip(), ca=ca), process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()


def _children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in children.read_text().split()] if children.exists() else []


def _name(pid: int) -> str:
    """``ferret_api``, ``ferret_worker train``, ``ferret_worker aggregate``, or the broker's program."""
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode().replace("\0", " ").split()
    return " ".join(arguments[arguments.index("-m") + 1 :]) if "-m" in arguments else Path(arguments[0]).name
