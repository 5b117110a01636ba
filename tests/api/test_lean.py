"""An API process that has submitted, shown the catalog and taken a contribution holds no torch and little memory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from ferret_core import discovery

HEAVY = {"torch", "transformers", "numba", "peft", "triton", "matplotlib", "ferret_worker"}
MOST_BYTES = 150 << 20
# What ``python -m ferret_api`` does, and on SIGUSR1 a list of all that it has imported.
PROGRAM = """
import pathlib, runpy, signal, sys
listed = pathlib.Path(sys.argv.pop(1))
def write(*_):
    draft = listed.with_suffix(".draft")
    draft.write_text("\\n".join(sys.modules))
    draft.rename(listed)
signal.signal(signal.SIGUSR1, write)
runpy.run_module("ferret_api", run_name="__main__", alter_sys=True)
"""


class Process(NamedTuple):
    """The API, its address, and the file that it lists its modules in when it is asked to."""

    started: subprocess.Popen[str]
    url: str
    listed: Path

    def peak_memory(self) -> int:
        """The most bytes that the process has held."""
        status = Path(f"/proc/{self.started.pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))

    def modules(self) -> set[str]:
        """The top-level modules that it has imported."""
        self.started.send_signal(signal.SIGUSR1)
        while not self.listed.exists():
            time.sleep(0.05)
        return {name.partition(".")[0] for name in self.listed.read_text().splitlines()}


@pytest.fixture
def process(home: Path, tmp_path: Path) -> Iterator[Process]:
    listed = tmp_path / "modules"
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(listed), "--port", "0"],
        env={**os.environ, "FERRET_HOME": str(home)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert started.stderr is not None
        url = next(found[1] for line in started.stderr if (found := re.search(r"listens on (http://\S+)", line)))
        yield Process(started, url, listed)
    finally:
        started.kill()
        started.communicate()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_submissions_the_catalog_and_uploads_need_neither_torch_nor_much_memory(
    site: Any, home: Path, process: Process, make_blob: Callable[..., bytes]
) -> None:
    experiment_id = site.running(participants={"edge": 1})
    token = site.enrol(experiment_id)
    (assignment_id,) = site.open_round(experiment_id, edge=["site-a"])
    admin = (home / "admin.token").read_text().strip()
    with httpx.Client(base_url=f"{process.url}/api/v1", timeout=60) as client:

        def ask(method: str, path: str, token: str, **request: Any) -> Any:
            headers = {"Authorization": f"Bearer {token}", **request.pop("headers", {})}
            answer = client.request(method, path, headers=headers, **request)
            assert answer.status_code < 300, answer.text
            return answer.json()

        for name in discovery.names("ferret_core.algorithms"):
            spec = {
                "name": name,
                "model": {"source": "/m"},
                "dataset": {"name": "jsonl", "train": "/d"},
                "participants": {"simulated": 2},
                "algorithm": {"name": name},
            }
            ask("POST", "/experiments", admin, json=spec)
        for kind in ("algorithms", "datasets", "partitions", "models"):
            for entry in ask("GET", f"/catalog/{kind}", admin)["items"]:
                ask("GET", f"/catalog/{kind}/{entry['name']}", admin)
        lease = ask("GET", "/participant/assignment", token)["assignment"]
        ask(
            "PUT",
            f"/participant/assignments/{assignment_id}/contribution",
            token,
            content=make_blob(lease),
            headers={
                "Content-Type": "application/octet-stream",
                "Ferret-Fence": str(lease["fence"]),
                "Ferret-Seconds": "1",
            },
        )
    held = process.peak_memory()
    assert HEAVY & process.modules() == set()
    assert held <= MOST_BYTES, f"{held >> 20} MiB"
