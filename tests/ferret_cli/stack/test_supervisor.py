from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from ferret_cli.stack import supervisor as module
from ferret_cli.stack.child import Child
from ferret_cli.stack.supervisor import Supervisor
from tests.refusals import refused

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")]


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(said):
    running = Supervisor(said.append, pause=0.1)
    yield running
    running.stop()


@pytest.fixture
def shell(tmp_path):
    """A child that runs a line of shell."""
    return lambda name, line, **options: Child(name, ["sh", "-c", line], tmp_path / f"{name}.log", **options)


def supervise(supervisor: Supervisor, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        supervisor.supervise()
        time.sleep(0.01)


def test_what_crashes_is_started_again_ever_more_slowly(supervisor, shell, said, tmp_path):
    supervisor.start(shell("worker", f"echo started >> {tmp_path}/starts; echo out of luck; exit 3"))
    supervise(supervisor, 1.0)
    starts = (tmp_path / "starts").read_text().count("started")
    assert 3 <= starts <= 4  # at 0, 0.1, 0.3 and 0.7 s
    assert "worker ended with exit code 3" in said[0]
    assert "out of luck" in said[1]


def test_a_proper_end_is_no_crash(supervisor, shell, said):
    supervisor.start(shell("participant", "exit 0", may_end=True))
    supervise(supervisor, 0.3)
    assert said == []


def test_children_are_stopped_from_the_top_layer_down(shell, said, tmp_path):
    """Those of one layer at the same time: each waits until the other has been told, too."""
    supervisor = Supervisor(said.append)
    names = {"broker": 0, "train": 1, "aggregate": 1}
    for name, layer in names.items():
        other = f"{tmp_path}/told-{'aggregate' if name == 'train' else 'train'}"
        wait = f"while [ ! -e {other} ]; do sleep 0.01; done" if layer else ":"
        told = f"touch {tmp_path}/told-{name}; {wait}; echo {name} >> {tmp_path}/order; exit 0"
        line = f"trap '{told}' TERM; touch {tmp_path}/up-{name}; while :; do sleep 0.05; done"
        supervisor.start(shell(name, line, layer=layer))
    while not all((tmp_path / f"up-{name}").exists() for name in names):
        time.sleep(0.01)
    supervisor.stop()
    order = (tmp_path / "order").read_text().split()
    assert set(order[:2]) == {"train", "aggregate"}
    assert order[2] == "broker"


def test_one_that_does_not_listen_is_killed_with_all_it_started(shell, said, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.2)
    supervisor = Supervisor(said.append)
    supervisor.start(shell("deaf", f"trap '' TERM; sleep 60 & echo $! > {tmp_path}/pid; wait; sleep 60"))
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)
    grandchild = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
    supervisor.stop()
    time.sleep(0.1)
    assert not grandchild.exists() or " Z " in (grandchild / "stat").read_text()


def test_an_end_at_start_shows_what_was_said_this_time(supervisor, shell, tmp_path):
    (tmp_path / "api.log").write_text("an old story\n")
    child = shell("api", "echo the port is mine; exit 5")
    supervisor.start(child)
    child.wait(5)
    with refused("internal", "exit code 5") as raised:
        supervisor.require_running()
    assert "the port is mine" in raised.value.detail
    assert "an old story" not in raised.value.detail
