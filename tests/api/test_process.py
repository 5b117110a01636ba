"""``python -m ferret_api`` as ``ferret serve`` runs it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ferret_api.server import listen


@pytest.fixture
def run(home: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "ferret_api", *arguments],
            env={**os.environ, "FERRET_HOME": str(home), **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def address(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"listens on (http://\S+)", line):
            return found[1]
    raise AssertionError("the API did not start")


def test_it_serves_on_a_free_port_and_stops_on_sigterm_under_an_open_stream(run: Any, home: Path) -> None:
    process = run("--port", "0")
    url = address(process)
    with httpx.Client(base_url=url, timeout=20) as client:
        while client.get("/healthz").status_code != 200:
            time.sleep(0.1)
        client.headers["Authorization"] = f"Bearer {(home / 'admin.token').read_text().strip()}"
        body = {
            "name": "x",
            "model": {"source": "/m"},
            "dataset": {"name": "jsonl", "train": "/d"},
            "participants": {"simulated": 1},
        }
        location = client.post("/api/v1/experiments", json=body).headers["Location"]
        with client.stream("GET", f"{location}/events/stream") as stream:
            lines = stream.iter_lines()
            next(lines)
            process.send_signal(signal.SIGTERM)
            list(lines)
    assert process.wait(timeout=5) in {0, -signal.SIGTERM}
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


@pytest.mark.slow
def test_ctrl_c_ends_it_quietly(run: Any) -> None:
    process = run("--port", "0")
    address(process)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "Traceback" not in told


def test_a_port_in_use_is_named(run: Any) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        process = run("--port", str(port))
        _, told = process.communicate(timeout=20)
    assert process.returncode == 5
    assert f"FERRET_PORT = {port}" in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_an_address_that_is_not_here_is_named(run: Any) -> None:
    process = run("--host", "203.0.113.1", "--port", "0")
    _, told = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "FERRET_HOST = '203.0.113.1'" in told


def test_a_database_that_was_never_migrated_is_refused_with_the_command(run: Any, tmp_path: Path) -> None:
    process = run("--port", "0", FERRET_DATABASE_URL=f"sqlite:///{tmp_path}/empty.db")
    _, told = process.communicate(timeout=20)
    assert process.returncode == 6
    assert "ferret migrate" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"FERRET_STORAGE_URL": "ftp://example.org"}, "storage_url"),
        ({"FERRET_BROKER_URL": "carrier-pigeon://"}, "FERRET_BROKER_URL"),
    ],
)
def test_what_cannot_be_opened_is_named(run: Any, environment: dict[str, str], told: str) -> None:
    process = run("--port", "0", **environment)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 2
    assert told in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_importing_the_application_loads_neither_torch_nor_the_worker() -> None:
    code = "import sys, ferret_api.app; print(*{'torch', 'transformers', 'ferret_worker'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
