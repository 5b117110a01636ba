"""Teams of processes on this machine, over gloo, as torchrun would start them."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 240


class Ended(NamedTuple):
    """One process of a team: its exit code and what it said on stdout and stderr."""

    code: int
    said: str
    errors: str


def free_port() -> int:
    """A port below the system's ephemeral ones, which another test's connection could take in the meantime."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def environment(rank: int, size: int, port: int) -> dict[str, str]:
    """What torchrun tells the process ``rank``."""
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
    return {name: str(value) for name, value in places.items()} | {"MASTER_ADDR": "127.0.0.1"}


def start(
    ranks: Sequence[int], size: int, program: Path, *arguments: str, more: Mapping[str, str] | None = None
) -> list[subprocess.Popen[str]]:
    """The processes ``ranks`` of a team of ``size`` that run ``program``."""
    port = free_port()
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("", "api", "worker"))
    shared = {**os.environ, "FERRET_DEVICE": "cpu", "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", **(more or {})}
    return [
        subprocess.Popen(
            [sys.executable, str(program), *arguments],
            env={**shared, **environment(rank, size, port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ranks
    ]


def wait(processes: Sequence[subprocess.Popen[str]]) -> list[Ended]:
    """How they ended; those that do not are killed."""
    try:
        told = [process.communicate(timeout=PATIENCE_SECONDS) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
    return [Ended(process.returncode, *said) for process, said in zip(processes, told, strict=True)]


def run(size: int, program: Path, *arguments: str, **more: Any) -> list[Ended]:
    """A whole team, from start to end."""
    return wait(start(range(size), size, program, *arguments, **more))
