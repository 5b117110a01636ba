"""A process that prints without end fills no disk."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ferret_cli.stack.child import Child
from ferret_cli.stack.log import Rotation

pytestmark = [pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")]

SIZE = 100_000


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Child]:
    """A finished child that ran a line of shell, with logs of 100 kB, two of them old."""

    def run(line: str, times: int = 1) -> Child:
        child = Child("flood", ["sh", "-c", line], tmp_path / "logs" / "flood.log", rotation=Rotation(SIZE, 2))
        for _ in range(times):
            child.start()
            assert child.wait(60)
            child.last_lines()
        return child

    return run


def test_a_flood_keeps_the_newest_lines_within_bounds(run: Callable[..., Child], tmp_path: Path) -> None:
    child = run("seq 1 200000; echo the end >&2")
    files = sorted((tmp_path / "logs").iterdir())
    assert [file.name for file in files] == ["flood.log", "flood.log.1", "flood.log.2"]
    assert all(file.stat().st_size <= SIZE for file in files)
    assert child.last_lines(2) == "  | 200000\n  | the end"
    kept = "".join(file.read_text() for file in reversed(files)).split()[:-2]
    assert kept == [str(number) for number in range(int(kept[0]), 200_001)], "whole lines, none missing in between"


def test_a_line_without_end_is_bounded_too(run: Callable[..., Child], tmp_path: Path) -> None:
    run("head -c 3000000 /dev/zero")
    files = list((tmp_path / "logs").iterdir())
    assert len(files) == 3
    assert sum(file.stat().st_size for file in files) <= 3 * 2 * SIZE


def test_a_new_start_goes_on_in_the_same_file(run: Callable[..., Child], tmp_path: Path) -> None:
    run("printf 'h\\303\\251 \\377\\n'", times=2)
    assert (tmp_path / "logs" / "flood.log").read_bytes() == b"h\xc3\xa9 \xff\n" * 2


def test_a_log_that_cannot_be_written_stops_nobody(run: Callable[..., Child], tmp_path: Path) -> None:
    (tmp_path / "logs" / "flood.log").mkdir(parents=True)
    assert run("seq 1 100000; exit 7").exit_code == 7
