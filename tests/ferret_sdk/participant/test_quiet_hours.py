"""When a site is quiet, by its own clock."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pydantic import TypeAdapter, ValidationError

from ferret_sdk.participant.site_terms import QuietHours, QuietWindow, end_of_quiet_hours

WINDOW = TypeAdapter[QuietWindow](QuietHours)
MONDAY = datetime(2026, 11, 23)


def at(day: int, hour: int, minute: int = 0) -> datetime:
    return MONDAY + timedelta(days=day, hours=hour, minutes=minute)


@pytest.mark.parametrize(
    ("windows", "now", "over"),
    [
        (["07:00-19:00"], at(0, 6, 59), None),
        (["07:00-19:00"], at(0, 7), at(0, 19)),
        (["07:00-19:00"], at(0, 19), None),
        (["22:00-06:00"], at(0, 23), at(1, 6)),
        (["22:00-06:00"], at(1, 5), at(1, 6)),
        (["mon-fri 07:00-19:00"], at(4, 12), at(4, 19)),
        (["mon-fri 07:00-19:00"], at(5, 12), None),
        (["fri 22:00-06:00"], at(5, 1), at(5, 6)),
        (["Sat-Mon 00:00-00:00"], at(5, 12), at(8, 0)),  # three whole days
        (["07:00-12:00", "12:00-19:00"], at(0, 8), at(0, 19)),
        (["00:00-00:00"], at(0, 8), at(7, 0) + timedelta(days=1)),  # always: asked again after a week
    ],
)
def test_quiet_hours_end(windows: list[str], now: datetime, over: datetime | None) -> None:
    assert end_of_quiet_hours([WINDOW.validate_python(text) for text in windows], now) == over


@pytest.mark.parametrize("text", ["7-19", "07:00-25:00", "mo 07:00-19:00", "07:00", "", 7, "mon-fri 07:00-19:00 "])
def test_what_is_no_time_is_refused(text: object) -> None:
    with pytest.raises(ValidationError):
        WINDOW.validate_python(text)
