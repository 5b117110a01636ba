"""Lines of ``--watch`` between two rounds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ferret_cli import round_progress
from ferret_core.protocol.resources.events import Event


def event(type: str, **data: Any) -> Event:
    return Event(seq=1, type=type, round=3, data=data, time=datetime.now(UTC))


EVENTS = [
    event("round.opened", participants=2),
    event("contribution.accepted", participant="client-000"),
    event("contribution.accepted", participant="client-001"),
    event("round.evaluated"),
]


def test_a_slow_round_counts_its_contributions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(round_progress, "QUIET_SECONDS", 0.0)
    assert list(round_progress.say_between_rounds("exp_1", EVENTS)) == EVENTS
    assert capsys.readouterr().err.splitlines() == [
        "round 3: 1 of 2 contributions have arrived",
        "round 3: 2 of 2 contributions have arrived",
    ]


def test_a_fast_round_prints_its_line_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(round_progress.say_between_rounds("exp_1", EVENTS)) == EVENTS
    assert capsys.readouterr().err == ""
