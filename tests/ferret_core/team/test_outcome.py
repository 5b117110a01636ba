"""What goes wrong in one process, or in all, ends as one typed error in each that is left."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests import teams

MEMBER = Path(__file__).with_name("member.py")
pytestmark = pytest.mark.heavy


def said(case: str, ranks: range = range(2), size: int = 2, **more: str) -> list[str]:
    ended = teams.wait(teams.start(ranks, size, MEMBER, case, more={"FERRET_TEAM_SECONDS": "20", **more}))
    return [each.said.strip() for each in ended if each.code != -signal.SIGKILL]


def test_a_piece_of_work_has_one_result() -> None:
    assert said("fine") == ["result", "result"]


def test_an_error_of_all_is_raised_as_it_is() -> None:
    assert [each.partition(":")[0] for each in said("all fail")] == ["training.non_finite"] * 2


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("one fails", "storage.full: no space left"),
        ("one is killed", "is gone"),
        ("other results", "result 1"),
        ("other models", "another model than process 0"),
    ],
)
def test_what_happens_to_one_breaks_the_team_and_says_why(case: str, told: str) -> None:
    found = said(case)
    assert found
    for each in found:
        assert each.startswith("team.broken: ")
        assert told in each
        assert "torchrun --max-restarts" in each


def test_one_that_hangs_is_waited_for_no_longer_than_the_setting_says() -> None:
    processes = teams.start(range(2), 2, MEMBER, "one hangs", more={"FERRET_TEAM_SECONDS": "3"})
    first = teams.wait(processes[:1])[0]
    processes[1].kill()
    teams.wait(processes[1:])
    assert first.said.startswith("team.broken: ")


def test_fewer_processes_than_announced_are_a_typed_error() -> None:
    (alone,) = said("fine", range(1), 2, FERRET_TEAM_SECONDS="2")
    assert alone.startswith("team.broken: WORLD_SIZE = 2 processes have not come within 2 s")


def test_the_setting_is_seconds() -> None:
    (ended,) = teams.wait(teams.start(range(1), 2, MEMBER, "fine", more={"FERRET_TEAM_SECONDS": "soon"}))
    assert ended.said.startswith("settings.invalid: FERRET_TEAM_SECONDS = 'soon': must be a number")
