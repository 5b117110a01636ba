"""The service's processes as children: their commands and their probes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from socket import socket

from ferret_cli.stack.child import Child
from ferret_cli.stack.probe import Touched

HEARTBEATS = "heartbeats"
LISTEN = "FERRET_LISTEN_FD"


def api(home: Path, environment: Mapping[str, str], listener: socket | None = None, name: str = "api") -> Child:
    """Returns the API. It inherits ``listener``, which several of its processes can share, or listens by itself."""
    if listener is None:
        return _beating(home, name, ["ferret_api"], environment, layer=1)
    child = _beating(home, name, ["ferret_api"], {**environment, LISTEN: str(listener.fileno())}, layer=1)
    child.descriptors = (listener.fileno(),)
    return child


def worker(home: Path, name: str, queue: str, environment: Mapping[str, str]) -> Child:
    """Returns a worker on ``queue``."""
    return _beating(home, name, ["ferret_worker", queue], environment, layer=2)


def participant(home: Path, name: str, arguments: list[str], environment: Mapping[str, str]) -> Child:
    """Returns ``ferret join``, which may end by itself."""
    child = _beating(home, name, ["ferret_cli", "join", *arguments], environment, layer=2)
    child.may_end = True
    return child


def _beating(home: Path, name: str, module: list[str], environment: Mapping[str, str], layer: int) -> Child:
    """Returns a process that must touch a file while it runs."""
    beat = home / HEARTBEATS / name
    beat.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", *module]  # -P: no folder of the working directory is imported
    log = home / "logs" / f"{name}.log"
    return Child(name, command, log, {**environment, "FERRET_HEARTBEAT": str(beat)}, layer, probe=Touched(beat))
