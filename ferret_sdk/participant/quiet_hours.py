"""Quiet hours: times of the week, by the site's local clock, during which a participant does nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, PlainSerializer

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORM = re.compile(rf"(?:({'|'.join(DAYS)})(?:-({'|'.join(DAYS)}))? )?(\d\d:\d\d)-(\d\d:\d\d)", re.IGNORECASE)
_WEEK = 7


class QuietWindow(NamedTuple):
    """A window from ``begin`` to ``end`` on each of ``days`` (0: Monday); into the next day if ``end`` is not later."""

    days: frozenset[int]
    begin: time
    end: time

    def __str__(self) -> str:
        named = " ".join(DAYS[day] for day in sorted(self.days) if len(self.days) < _WEEK)
        return f"{named} {self.begin:%H:%M}-{self.end:%H:%M}".strip()

    def end_after(self, now: datetime) -> datetime | None:
        """Returns the end of the window that contains ``now``, or None outside the window."""
        for day in (now.date(), now.date() - timedelta(days=1)):
            if day.weekday() in self.days:
                begin = datetime.combine(day, self.begin)
                end = datetime.combine(day + timedelta(days=self.end <= self.begin), self.end)
                if begin <= now < end:
                    return end
        return None


def now() -> datetime:
    """Returns the local time of this machine. Only quiet hours, hours per day and the site's log use it."""
    return datetime.now()


def ends(windows: Sequence[QuietWindow], now: datetime) -> datetime | None:
    """Returns the end of the quiet hours that contain ``now``, a local time, or None outside quiet hours."""
    at = now
    while at - now < timedelta(days=_WEEK):  # windows may be adjacent, round the whole week
        later = [end for window in windows if (end := window.end_after(at)) is not None]
        if not later:
            break
        at = max(later)
    return None if at == now else at


def _parse(value: Any) -> Any:
    found = _FORM.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("is not a time such as 07:00-19:00 or mon-fri 07:00-19:00")
    first, last, begin, end = found.groups()
    return QuietWindow(_days(first, last), time.fromisoformat(begin), time.fromisoformat(end))


def _days(first: str | None, last: str | None) -> frozenset[int]:
    if first is None:
        return frozenset(range(_WEEK))
    begin = DAYS.index(first.lower())
    end = DAYS.index((last or first).lower())
    return frozenset((begin + step) % _WEEK for step in range((end - begin) % _WEEK + 1))


QuietHours = Annotated[QuietWindow, BeforeValidator(_parse), PlainSerializer(str)]
