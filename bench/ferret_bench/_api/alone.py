"""The API alone, in a separate process, with one experiment in its database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_db import migrate
from ferret_db.database import Database
from ferret_db.engine import lifecycle

TOKEN = "a-token-for-the-benchmark"  # noqa: S105 # nosec B105
START_SECONDS = 60
NO_BROKER = "redis://127.0.0.1:1/0"
SPEC = {
    "name": "followed",
    "rounds": 1,
    "model": {"source": "/nowhere"},
    "dataset": {"name": "jsonl", "train": "/nowhere", "test": "/nowhere"},
    "participants": {"edge": 1},
}


class Api(NamedTuple):
    """The API's port and database, and the experiment."""

    port: int
    pid: int
    database: Database
    experiment: str
    log: Path


@contextmanager
def serving(home: Path, **settings: str) -> Generator[Api]:
    """Starts the API; ``settings`` are environment variables."""
    home.mkdir(parents=True)
    url = f"sqlite:///{home}/ferret.db"
    migrate.upgrade(url)
    database = Database(url)
    with database.begin() as s:
        experiment = lifecycle.submit(s, ExperimentSpec.model_validate(SPEC))[0].id
    log = home / "api.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ferret_api", "--port", "0"],
            env={
                **os.environ,
                "FERRET_HOME": str(home),
                "FERRET_DATA_ROOTS": "/",
                "FERRET_ADMIN_TOKEN": TOKEN,
                "FERRET_BROKER_URL": NO_BROKER,
                **settings,
            },
            stderr=said,
        )
    try:
        yield Api(_port(process, log), process.pid, database, experiment, log)
    finally:
        process.kill()
        process.wait()
        database.dispose()


def get(port: int, path: str = "/api/v1/experiments", timeout: float = 30.0) -> int:
    """Sends one GET as the administrator, over a new connection. Returns the status."""
    connection = HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"listens on http://127\.0\.0\.1:(\d+)", log.read_text()):
            port = int(found[1])
            try:
                if get(port, "/healthz") == 200:
                    return port
            except OSError:
                pass
        time.sleep(0.1)
    raise FerretError("server.not_ready", f"the API's log: {log.read_text()[-1000:]}")
