"""One process per participant on a machine, and one at a time for the base model that several share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_sdk.participant.lock import in_turn, sole

HOLDER = """
import sys, time
from pathlib import Path
from ferret_sdk.participant.lock import sole
with sole(Path(sys.argv[1]), "clinic"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "participants" / "par_1.lock"


@pytest.fixture
def other(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.heavy
def test_a_second_process_is_refused_and_told_which_is_the_first(path: Path, other: subprocess.Popen[str]) -> None:
    with (
        pytest.raises(FerretError, match=f"clinic already takes part .*process {other.pid}") as raised,
        sole(path, "clinic"),
    ):
        pass
    assert raised.value.code == "participant.in_use"


@pytest.mark.heavy
def test_a_process_that_was_killed_holds_nothing(path: Path, other: subprocess.Popen[str]) -> None:
    other.send_signal(signal.SIGKILL)
    other.wait()
    with sole(path, "clinic"):
        assert path.with_suffix(".pid").read_text() == f"{os.getpid()}\n"
    assert not path.with_suffix(".pid").exists()


def test_what_is_kept_is_the_owners_alone(path: Path) -> None:
    with sole(path, "clinic"):
        assert (path.stat().st_mode | path.parent.stat().st_mode) & 0o077 == 0


@pytest.mark.heavy
def test_the_second_waits_for_its_turn_and_says_so_once(path: Path) -> None:
    told, done = list[str](), threading.Event()

    def second() -> None:
        with in_turn(path, lambda: told.append("waiting")):
            told.append("in turn")
            done.set()

    thread = threading.Thread(target=second)
    with in_turn(path, lambda: told.append("the first waits")):
        thread.start()
        assert not done.wait(0.5)
        assert told == ["waiting"]
    thread.join(10)
    assert told == ["waiting", "in turn"]
