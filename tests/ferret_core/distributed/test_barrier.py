"""What goes wrong in one process, or in all, ends as one typed error in each that is left."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ferret_core.distributed.process_group import started
from tests import process_groups
from tests.refusals import refused

MEMBER = Path(__file__).with_name("member.py")
pytestmark = pytest.mark.heavy


def said(*cases: str, ranks: range = range(2), **more: str) -> list[list[str]]:
    """What the processes that were left said of each case, in lines."""
    ended = process_groups.wait(
        process_groups.start(ranks, 2, MEMBER, *cases, more={"FERRET_COLLECTIVE_TIMEOUT_SECONDS": "60", **more})
    )
    return [each.said.splitlines() for each in ended if each.code != -signal.SIGKILL]


@pytest.mark.slow
def test_what_all_meet_is_raised_as_it_is_and_what_differs_is_named() -> None:
    first, second = said("fine", "all fail", "other results", "other models", "fine again")
    assert len(first) == len(second) == 5
    for fine, failed, results, models, again in (first, second):
        assert (fine, again) == ("result", "result")
        assert failed.startswith("training.non_finite: the loss of process")
        assert results.startswith(
            "process_group.failed: process 1 ended with 'fine result 1' and process 0 with 'fine result 0'"
        )
        assert models.startswith(
            "process_group.failed: process 1 has another model than process 0: digest 1, not digest 0"
        )


@pytest.mark.parametrize(
    ("case", "told"),
    [
        pytest.param("one fails", "storage.full: no space left", marks=pytest.mark.slow),
        ("one is killed", "is gone"),
    ],
)
def test_what_happens_to_one_breaks_the_team_and_says_why(case: str, told: str) -> None:
    found = said(case)
    assert len(found) == (2 if case == "one fails" else 1)
    for (line,) in found:
        assert line.startswith("process_group.failed: ")
        assert told in line
        assert "torchrun --max-restarts" in line


@pytest.mark.slow
def test_one_that_hangs_is_waited_for_no_longer_than_the_setting_says() -> None:
    processes = process_groups.start(range(2), 2, MEMBER, "one hangs", more={"FERRET_COLLECTIVE_TIMEOUT_SECONDS": "3"})
    first = process_groups.wait(processes[:1])[0]
    processes[1].kill()
    process_groups.wait(processes[1:])
    assert first.said.startswith("process_group.failed: ")


@pytest.mark.slow
def test_fewer_processes_than_announced_are_a_typed_error() -> None:
    ((alone,),) = said("fine", ranks=range(1), FERRET_COLLECTIVE_TIMEOUT_SECONDS="2")
    assert alone.startswith("process_group.failed: WORLD_SIZE = 2 processes have not come within 2 s")


def test_the_setting_is_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in process_groups.environment(0, 2, process_groups.free_port()).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FERRET_COLLECTIVE_TIMEOUT_SECONDS", "soon")
    with refused("settings.invalid", "FERRET_COLLECTIVE_TIMEOUT_SECONDS = 'soon'"), started("cpu"):
        pass
