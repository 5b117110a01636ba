"""The server's folder: one server at a time, and a note for clients on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ferret_cli.pid_lock import LockHolder, take
from ferret_core.protocol.errors import FerretError
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.service.server_address import SERVER_FILE, TOKEN_FILE

LOCK_FILE = "serve.lock"


@contextmanager
def locked(home: Path) -> Generator[None]:
    """Holds the folder for this process; raises ``home.in_use`` with the holder's pid if another process has it."""
    with _taken(home):
        yield


def _taken(home: Path) -> TextIO:
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        return take(home / LOCK_FILE)
    except LockHolder as held:
        raise FerretError("home.in_use", f"ferret serve with pid {held.pid} runs in {home}") from held
    except OSError as error:
        reason = f"cannot be used ({error.strerror}); choose another with --home or FERRET_HOME"
        raise FerretError.of_field("settings.invalid", "home", str(home), reason) from error


@contextmanager
def announced(home: Path, url: str, certificate: Path | None) -> Generator[None]:
    """Writes ``server.json``, with address and certificate for this machine's SDK and CLI, while the server runs."""
    path = home / SERVER_FILE
    said = {"url": url, "pid": os.getpid()} | ({"certificate": str(certificate)} if certificate else {})
    write_durably(path, json.dumps(said).encode() + b"\n")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def admin_token(home: Path) -> str:
    """Returns the API's token: the configured one, else the one generated in ``home``."""
    if given := os.environ.get("FERRET_ADMIN_TOKEN"):
        return given
    return Path(os.environ.get("FERRET_ADMIN_TOKEN_FILE") or home / TOKEN_FILE).read_text().strip()
