"""Teams that run a list of cases, one after the other: a start costs more than all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import process_groups

MEMBER = Path(__file__).with_name("member.py")


@pytest.fixture
def in_team(tmp_path: Path) -> Callable[..., list[Any]]:
    """``in_team(2, [case, argument, …], …)``: what each case of ``member.py`` finds in a team of two."""

    def run(size: int, *cases: list[Any]) -> list[Any]:
        asked = tmp_path / "cases.json"
        asked.write_text(json.dumps(cases))
        ended = process_groups.run(size, MEMBER, str(asked))
        assert [each.code for each in ended] == [0] * size, "\n".join(each.errors for each in ended)
        return [json.loads(line) for line in ended[0].said.splitlines() if line.startswith("{")]

    return run
