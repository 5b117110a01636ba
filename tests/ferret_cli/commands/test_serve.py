"""``ferret serve`` as a process tree, watched through /proc."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from ferret_core import __version__

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def children(pid: int) -> dict[int, str]:
    """Command lines of the living processes that ``pid`` has started, by pid."""
    found: dict[int, str] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
            command = (status.parent / "cmdline").read_text().replace("\0", " ").strip()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found[int(status.parent.name)] = command
    return found


def child(pid: int, word: str) -> int | None:
    return next((number for number, command in children(pid).items() if word in command), None)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def eventually(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_whole_life(serve, ferret, home, free_port):
    served = serve()
    address = served.address()
    pid = served.process.pid
    token = (home / "admin.token").read_text().strip()
    assert address.startswith(f"http://127.0.0.1:{free_port}/#ticket=")
    assert token not in address
    assert json.loads((home / "server.json").read_text()) == {"url": f"http://127.0.0.1:{free_port}", "pid": pid}
    assert (home / "admin.token").stat().st_mode & 0o777 == 0o600
    started = children(pid)
    assert sorted(command.split(" -m ")[-1] for command in started.values() if " -m " in command) == [
        "ferret_api",
        "ferret_worker aggregate",
        "ferret_worker playground",
        "ferret_worker train",
    ]
    assert len(started) == 5

    # The command line finds the server of this home without being told.
    assert json.loads(ferret("experiment", "list", "--json").stdout) == {"items": []}

    # A second server in the same folder, and one on the same port, are refused; the first does not notice.
    second = ferret("serve", "--port", "1")
    assert second.returncode == 5
    assert str(pid) in second.stderr
    assert str(home) in second.stderr
    other = ferret("serve", "--home", home.parent / "other", "--port", free_port)
    assert other.returncode == 5
    assert str(free_port) in other.stderr
    assert "--port" in other.stderr
    assert [path.name for path in (home.parent / "other").iterdir()] == ["serve.lock"]

    # A crashed child comes back.
    api = child(pid, "-m ferret_api")
    assert api is not None
    os.kill(api, signal.SIGKILL)
    eventually(lambda: child(pid, "-m ferret_api") not in {None, api} and listens(free_port))
    assert "api ended with SIGKILL; starting it again" in served.said.read_text()
    with urlopen(f"http://127.0.0.1:{free_port}/healthz") as answer:
        assert answer.status == 200

    # The broker's password is its owner's alone.
    config = next((home / "broker").glob("*/server.conf"))
    setting = dict(line.split(maxsplit=1) for line in config.read_text().splitlines())
    assert config.stat().st_mode & 0o777 == 0o600
    assert not any(setting["requirepass"] in command for command in children(pid).values())

    # Ctrl-C leaves nothing behind.
    left = {**started, **children(pid)}
    broker_port = int(setting["port"])
    assert listens(broker_port)
    assert served.stop() == 0
    assert not [number for number in left if alive(number)]
    assert not listens(free_port)
    assert not listens(broker_port)
    assert not (home / "server.json").exists()
    assert "Traceback" not in served.said.read_text()


@pytest.mark.slow
def test_several_api_processes_share_the_port_and_count_together(serve, home, free_port):
    served = serve(FERRET_API_PROCESSES="2")
    served.address()

    def apis() -> set[int]:
        return {number for number, command in children(served.process.pid).items() if "-m ferret_api" in command}

    first, second = apis()
    assert listens(free_port)

    def get(path: str) -> str:
        token = (home / "admin.token").read_text().strip()
        asked = Request(f"http://127.0.0.1:{free_port}{path}", headers={"Authorization": f"Bearer {token}"})
        with urlopen(asked, timeout=10) as answer:
            return answer.read().decode()

    for _ in range(20):
        get("/api/v1/info")
    counted = 'ferret_http_requests_total{method="GET",route="/api/v1/info",status="200"} 20.0'
    assert all(counted in get("/metrics") for _ in range(4)), "whichever process answers"

    # One that is killed leaves its connections to the other, and comes back; one that hangs is replaced.
    os.kill(first, signal.SIGKILL)
    for _ in range(5):
        assert get("/healthz")
    eventually(lambda: len(apis() - {first}) == 2)
    assert counted in get("/metrics"), "what the dead process has counted still counts"
    assert (home / "logs" / "api-2.log").exists()
    assert second in apis()


@pytest.mark.slow
def test_children_die_with_a_killed_supervisor(serve):
    served = serve()
    served.address()
    left = children(served.process.pid)
    assert len(left) == 5
    served.stop(signal.SIGKILL)
    eventually(lambda: not [number for number in left if alive(number)])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_can_be_interrupted_while_it_starts(serve, home, free_port, number):
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and children inherit that
    served = serve()
    signal.signal(signal.SIGHUP, inherited)
    eventually(lambda: len(children(served.process.pid)) == 5)
    left = children(served.process.pid)
    assert served.stop(number) == 0
    assert not [number for number in left if alive(number)]
    assert not listens(free_port)
    assert not (home / "server.json").exists()


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_it_speaks_before_it_loads_anything_heavy(command, environment, tmp_path):
    program = """
import sys

for heavy in ("ferret_cli.stack", "torch", "transformers", "numpy", "pandas", "sqlalchemy", "fastapi"):
    sys.modules[heavy] = None

from ferret_cli.main import main

main()
"""
    arguments = [sys.executable, "-c", program, command]
    done = subprocess.run(arguments, env=environment(), cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr.startswith(f"starting Ferret {__version__}")
    assert "ModuleNotFoundError" in done.stderr


def test_a_host_that_is_not_this_machines(ferret, free_port):
    done = ferret("serve", "--host", "192.0.2.1", "--port", free_port)
    assert done.returncode == 2
    assert "192.0.2.1" in done.stderr


@pytest.mark.slow
def test_of_two_started_at_once_on_one_port_one_serves(environment, broker, free_port, tmp_path):
    """The other ends before it has started, announced or written anything."""
    homes = [tmp_path / "a", tmp_path / "b"]
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "ferret_cli", "serve", "--port", str(free_port), "--home", str(home)],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for home in homes
    ]
    eventually(lambda: any(process.poll() is not None for process in both), 60)
    loser = next(number for number, process in enumerate(both) if process.poll() is not None)
    winner = 1 - loser
    try:
        lines = both[winner].stdout.readline()
        assert lines.startswith(f"http://127.0.0.1:{free_port}/#ticket=")
        assert json.loads((homes[winner] / "server.json").read_text())["pid"] == both[winner].pid
        said, complained = both[loser].communicate()
        assert (both[loser].returncode, said) == (5, "")
        assert "is taken" in complained
        assert [path.name for path in homes[loser].iterdir()] == ["serve.lock"]
    finally:
        both[winner].send_signal(signal.SIGINT)
        both[winner].communicate(timeout=60)


@pytest.mark.slow
def test_in_a_home_open_to_others_nothing_that_it_writes_is(serve, home):
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    (home / "logs").mkdir(mode=0o755)
    (home / "logs/api.log").touch(0o644)
    serve().address()
    for path in (home / "ferret.db", home / "server.json", home / "admin.token", *home.glob("logs/*")):
        assert path.stat().st_mode & 0o777 == 0o600, path
    for path in home.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
    assert home.stat().st_mode & 0o777 == 0o755


def test_migrate_makes_a_database_that_only_its_owner_reads(ferret_in_process, home):
    before = os.umask(0o022)
    try:
        assert ferret_in_process("migrate").returncode == 0
    finally:
        os.umask(before)
    assert (home / "ferret.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("command", [["serve", "--port", "1"], ["migrate"]])
def test_a_damaged_database_is_told_before_anything_starts(ferret, home, command):
    home.mkdir()
    (home / "ferret.db").write_bytes(b"\xff" * 8192)
    done = ferret(*command)
    assert done.returncode == 1
    assert "ferret restore" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "logs").exists()
