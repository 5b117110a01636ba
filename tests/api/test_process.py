"""``python -m ferret_api`` as ``ferret serve`` runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from ferret_api.server import listen
from tests.api.conftest import document
from tests.security.api_process import ApiProcess


def test_it_serves_on_a_free_port_and_stops_on_sigterm_under_an_open_stream(home: Path) -> None:
    with ApiProcess(home, FERRET_DATA_ROOTS="/") as api:
        location = api.admin.post("/api/v1/experiments", json=document()).headers["Location"]
        with api.admin.stream("GET", f"{location}/events/stream") as stream:
            lines = stream.iter_lines()
            next(lines)
            api.process.send_signal(signal.SIGTERM)
            list(lines)
        assert api.process.wait(timeout=5) in {0, -signal.SIGTERM}
        with pytest.raises(httpx.ConnectError):
            httpx.get(api.url)


@pytest.mark.slow
def test_ctrl_c_ends_it_quietly(home: Path) -> None:
    with ApiProcess(home) as api:
        api.process.send_signal(signal.SIGINT)
        assert api.process.wait(10) == 130
        assert "Traceback" not in api.said()


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("FERRET_PORT", "{taken}", 5),
        pytest.param("FERRET_HOST", "203.0.113.1", 2, marks=pytest.mark.slow),
        ("FERRET_DATABASE_URL", "sqlite:///{folder}/empty.db", 6),
        ("FERRET_STORAGE_URL", "ftp://example.org", 2),
        ("FERRET_BROKER_URL", "carrier-pigeon://", 2),
    ],
)
def test_what_keeps_it_from_starting_is_told(home: Path, tmp_path: Path, name: str, value: str, code: int) -> None:
    told: dict[str, Any] = {"FERRET_STORAGE_URL": "storage_url", "FERRET_DATABASE_URL": "ferret migrate"}
    with listen("127.0.0.1", 0) as taken:
        given = {name: value.format(taken=taken.getsockname()[1], folder=tmp_path)}
        environment = {**os.environ, "FERRET_HOME": str(home), "FERRET_PORT": "0", **given}
        command = [sys.executable, "-m", "ferret_api"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr
    assert told.get(name, name) in done.stderr
    assert "Traceback" not in done.stderr
