"""The service's processes as children: how each is started, and how it shows that it still works."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from socket import socket

from ferret_cli.stack.child import Child
from ferret_cli.stack.probe import HEALTHZ, Answer, Touched, client_hello
from ferret_core.certificate import CERT

HEARTBEATS = "heartbeats"


def api(home: Path, host: str, port: int, environment: Mapping[str, str], listener: socket | None = None) -> Child:
    """The API, which must answer at ``host:port``; it takes ``listener``, or listens by itself."""
    question = client_hello() if CERT in environment else HEALTHZ
    probe, log = Answer(host, port, question), _log(home, "api")
    child = Child("api", _python("ferret_api"), log, environment, layer=1, probe=probe)
    if listener is not None:
        child.descriptors = (listener.fileno(),)
        child.environment = {**environment, "FERRET_LISTEN_FD": str(listener.fileno())}
    return child


def worker(home: Path, name: str, queue: str, environment: Mapping[str, str]) -> Child:
    """A worker on ``queue``, which must touch a file."""
    return _beating(home, name, ["ferret_worker", queue], environment)


def participant(home: Path, name: str, arguments: list[str], environment: Mapping[str, str]) -> Child:
    """``ferret join``, which may end by itself; until then it must touch a file."""
    return _beating(home, name, ["ferret_cli", "join", *arguments], environment, may_end=True)


def _beating(
    home: Path, name: str, module: list[str], environment: Mapping[str, str], *, may_end: bool = False
) -> Child:
    beat = home / HEARTBEATS / name
    environment = {**environment, "FERRET_HEARTBEAT": str(beat)}
    return Child(name, _python(*module), _log(home, name), environment, 2, may_end, Touched(beat))


def _python(*module: str) -> list[str]:
    return [sys.executable, "-P", "-m", *module]  # -P: no folder of the working directory is imported


def _log(home: Path, name: str) -> Path:
    return home / "logs" / f"{name}.log"
