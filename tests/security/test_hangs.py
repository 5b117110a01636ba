"""A process that neither works nor ends: it must be noticed, ended and replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ferret_bench._control.workload import Workload
from ferret_cli.stack import broker as embedded
from ferret_cli.stack import stack
from ferret_cli.stack.child import Child
from ferret_cli.stack.ports import free_port
from ferret_cli.stack.probe import wait_until_ready
from ferret_cli.stack.supervisor import Supervisor
from ferret_core.rounds.sampling import client_names
from ferret_core.simulate import simulate
from ferret_db import migrate
from ferret_runtime.settings import ServiceSettings
from ferret_sdk.service.service import Service

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="POSIX signals, /proc")]
SILENT_SECONDS = 3.0
LEASE_SECONDS = "8"
PATIENCE_SECONDS = 240.0
"""Longer than anything takes that ends at all."""

BEATING = """
import sys, threading, time
from pathlib import Path
from ferret_core.system.heartbeat import Heartbeat
Heartbeat(Path(sys.argv[1]), blocked_seconds=2).start()
"""
BLOCKED = "lock = threading.Lock(); lock.acquire(); lock.acquire()"
WAITING = "import os; os.read(os.pipe()[0], 1)"
COMPUTING = "import hashlib\nwhile True: hashlib.pbkdf2_hmac('sha256', b'x', b'y', 20_000_000)"
POLLING = "while True: time.sleep(0.5)"
PARENT = "import subprocess; subprocess.run([sys.executable, '-c', 'while True: pass'])"


def until(holds: Callable[[], object], meanwhile: Callable[[], object] = lambda: None) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        meanwhile()
        time.sleep(0.05)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Runs a line of Python in a process with a heartbeat; returns the file that it touches."""
    running: list[subprocess.Popen[bytes]] = []

    def start(line: str) -> Path:
        beat = tmp_path / "beat"
        command = [sys.executable, "-c", BEATING + line, str(beat)]
        running.append(subprocess.Popen(command, start_new_session=True))
        until(beat.exists)
        return beat

    yield start
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def beats(beat: Path, seconds: float) -> bool:
    """Whether the file is touched ``seconds`` from now, or later."""
    time.sleep(seconds)
    before = beat.stat().st_mtime_ns
    time.sleep(3)
    return beat.stat().st_mtime_ns != before


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(COMPUTING, id="one long step"),
        pytest.param(POLLING, id="polling", marks=pytest.mark.slow),
        pytest.param(PARENT, id="a child computes", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_process_at_work_goes_on_touching_its_file(start: Callable[[str], Path], line: str) -> None:
    assert beats(start(line), 4)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(BLOCKED, id="a deadlock"),
        pytest.param(WAITING, id="a pipe that nobody writes to", marks=pytest.mark.slow),
    ],
)
def test_a_process_whose_main_thread_is_blocked_stops(start: Callable[[str], Path], line: str) -> None:
    assert not beats(start(line), 4)


def stop(child: Child) -> int:
    """SIGSTOP; its pid."""
    assert child.pid is not None
    os.killpg(child.pid, signal.SIGSTOP)
    return child.pid


def test_a_child_that_falls_silent_is_ended_and_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferret_cli.stack.supervisor.GRACE_SECONDS", 0.5)  # the child is deaf at the end, too
    said: list[str] = []
    supervisor, beat = Supervisor(said.append, pause=0.1, silent=1), tmp_path / "beat"
    line = f"trap '' TERM; for i in 1 2 3 4 5 6; do touch {beat}; sleep 0.2; done; echo >> {tmp_path}/silent; sleep 600"
    child = Child("worker", ["sh", "-c", line], tmp_path / "log", probe=stack.Touched(beat))
    supervisor.start(child)
    first = child.pid
    until(lambda: child.pid != first, supervisor.supervise)
    assert said[0].startswith("worker hangs: no sign of life for ")
    assert "worker ended with SIGKILL" in said[1]
    supervisor.stop()


class Told:
    """A probe that says what it was told."""

    def __init__(self) -> None:
        self.alive = True

    def __call__(self) -> bool:
        return self.alive

    def reset(self) -> None:
        pass


def test_a_supervisor_that_was_away_blames_nobody(tmp_path: Path) -> None:
    """As when the whole machine slept: what is old may be old for everybody."""
    said: list[str] = []
    supervisor, probe = Supervisor(said.append, silent=1), Told()
    child = Child("worker", ["sleep", "600"], tmp_path / "log", probe=probe)
    supervisor.start(child)
    supervisor.supervise()
    probe.alive = False
    time.sleep(1.5)
    supervisor.supervise()
    assert said == []
    until(lambda: said, supervisor.supervise)
    supervisor.stop()


@pytest.fixture
def service(
    tmp_path: Path, need: Callable[[bool, str], None], no_settings: None
) -> Iterator[tuple[Supervisor, dict[str, Child], Service, list[str]]]:
    """Every process of the service, supervised, with an API that answers."""
    need(embedded.find_program() is not None, "a broker: apt-get install redis-server")
    home, port, said = tmp_path / "home", free_port(), list[str]()
    migrate.upgrade(ServiceSettings(home=home).database_url)
    broker = embedded.prepare(home)
    environment = {
        "FERRET_HOME": str(home),
        "FERRET_PORT": str(port),
        "FERRET_DATA_ROOTS": str(tmp_path),
        "FERRET_BROKER_URL": broker.url,
        "FERRET_LEASE_SECONDS": LEASE_SECONDS,
        "FERRET_RECONCILE_SECONDS": "0.5",
        "FERRET_EXPECTED_PARTICIPANTS": "40",
        "FERRET_THREADS": "1",
    }
    children = {
        "broker": broker.child,
        "api": stack.api_process(home, environment),
        "train": stack.worker_process(home, "train", "train", environment),
        "aggregate": stack.worker_process(home, "aggregate", "aggregate", environment),
    }
    supervisor = Supervisor(said.append, pause=0.1, silent=SILENT_SECONDS)
    for child in children.values():
        supervisor.start(child)
    try:
        wait_until_ready("127.0.0.1", port, supervisor.supervise)
        token = (home / "admin.token").read_text().strip()
        yield supervisor, children, Service(f"http://127.0.0.1:{port}", token), said
    finally:
        supervisor.stop()


@pytest.mark.slow
@pytest.mark.redis
@pytest.mark.timeout(900)
def test_every_kind_of_process_that_hangs_is_replaced_and_the_model_is_the_same(
    service: tuple[Supervisor, dict[str, Child], Service, list[str]], tmp_path: Path
) -> None:
    supervisor, children, client, said = service
    workload = Workload(tmp_path / "workload", owners=3)
    run = client.submit(workload.spec(3, real=1))
    _, (data,) = workload.deal_out(1)
    arguments = [client.url, "--data", str(data), "--name", client_names(workload.owners)[-1], "--yes"]
    own = {"FERRET_CODE": run.create_code().code, "FERRET_HOME": str(tmp_path / "edge"), "OMP_NUM_THREADS": "1"}
    children["edge"] = stack.participant_process(tmp_path / "home", "edge", arguments, own)
    supervisor.start(children["edge"])
    beating = [tmp_path / "home" / stack.HEARTBEATS / name for name in ("train", "aggregate", "edge")]
    until(lambda: all(beat.exists() for beat in beating), supervisor.supervise)
    for _ in range(30):  # until the supervisor has had the first sign of life of each
        supervisor.supervise()
        time.sleep(0.1)
    struck = {name: stop(child) for name, child in children.items()}
    until(lambda: all(children[name].pid != pid for name, pid in struck.items()), supervisor.supervise)
    assert {line.split()[0] for line in said if " hangs: " in line} == set(children)
    until(lambda: run.refresh().state.finished, supervisor.supervise)
    assert (run.state, run.experiment.digest) == ("completed", simulate(workload.spec(3)).digest)
