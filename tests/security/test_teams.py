"""A process that takes a place in a training team cannot run anything in the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import process_groups

MEMBER = Path(__file__).with_name("team_member.py")


@pytest.mark.slow
def test_what_a_hostile_process_sends_is_a_typed_error_and_never_run(tmp_path: Path) -> None:
    first, second = process_groups.run(
        2, MEMBER, str(tmp_path / "mark"), more={"FERRET_COLLECTIVE_TIMEOUT_SECONDS": "20"}
    )
    assert not (tmp_path / "mark").exists()
    assert [line.partition(": nothing was stored")[0] for line in first.said.splitlines()] == [
        "process_group.failed: process 1 sends a text that is not UTF-8",
        f"process_group.failed: process 1 sends a text of {1 << 60} bytes; the maximum is {1 << 20}",
        "process_group.failed: process 1 sends a text of -1 bytes; the maximum is 1048576",
        "process_group.failed: process 1 sends a text that is not UTF-8",
        "process_group.failed: process 1 sends JSON of another kind",
        "process_group.failed: process 1 sends JSON of another kind",
    ], first.errors + second.errors
