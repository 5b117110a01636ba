"""The SDK's only retry policy: conditions and delays."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ferret_core.protocol.errors import FerretError

ATTEMPTS = 4  # consecutive failures that a short request survives: about 2 seconds without a server
PATIENT = 8  # the same for streams, downloads and long polls: about 25 seconds, enough for a server restart
FIRST_WAIT = 0.25
LONGEST_WAIT = 8.0
LONGEST_RETRY_AFTER = 60.0
FIRST_OUTAGE_PAUSE = 5.0
LONGEST_OUTAGE_PAUSE = 300.0
# Errors after the last retry where the server may yet come back.
AWAY = frozenset({"server.unreachable", "server.not_ready"})


class Transient(Exception):
    """A failure worth retrying. ``error`` is raised to the caller after the last retry."""

    def __init__(self, error: FerretError, retry_after: float | None = None) -> None:
        super().__init__(error.detail)
        self.error = error
        self.retry_after = retry_after


class Retry:
    """Counts consecutive failures and sleeps between them.

    Waits 0.25, 0.5, 1, … 8 seconds with up to a quarter of jitter, or the time in ``Retry-After`` (at most 60 s).
    """

    def __init__(self, attempts: int) -> None:
        self._attempts = attempts
        self._failures = 0

    def reset(self) -> None:
        """Resets the count after progress."""
        self._failures = 0

    def wait(self, failure: Transient) -> None:
        """Sleeps before the next attempt. Raises ``failure.error`` after the last one."""
        self._failures += 1
        if self._failures >= self._attempts:
            raise failure.error
        time.sleep(self._pause() if failure.retry_after is None else failure.retry_after)

    def _pause(self) -> float:
        pause = min(FIRST_WAIT * 2 ** (self._failures - 1), LONGEST_WAIT)
        return pause * random.uniform(1.0, 1.25)


class Outage:
    """Waits while a server is away: 5, 10, 20, … 300 seconds.

    Up to a quarter of jitter spreads the clients of one server. The total is bounded by ``limit`` seconds, if given.
    """

    def __init__(self, limit: float | None = None) -> None:
        self._limit = limit
        self._began = time.monotonic()
        self._failures = 0

    @property
    def seconds(self) -> float:
        """Seconds since the server went away."""
        return time.monotonic() - self._began

    def wait(self, error: FerretError) -> None:
        """Sleeps before the next attempt. Raises ``error`` once the limit is reached."""
        if self._limit is not None and self.seconds >= self._limit:
            raise error
        pause = min(FIRST_OUTAGE_PAUSE * 2 ** min(self._failures, 10), LONGEST_OUTAGE_PAUSE) * random.uniform(1.0, 1.25)
        self._failures += 1
        time.sleep(pause if self._limit is None else min(pause, max(0.0, self._limit - self.seconds)))


def retry_after(headers: Mapping[str, str], longest: float = LONGEST_RETRY_AFTER) -> float | None:
    """Returns the seconds of a ``Retry-After`` header, a number or a date (RFC 9110 §10.2.3), at most ``longest``.

    Returns None without a usable header. A date is compared with the response's own, since the clocks of two machines
    differ.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        if text.isdigit():
            return min(float(text), longest)
        sent = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        seconds = (parsedate_to_datetime(text) - sent).total_seconds()
    except (ValueError, TypeError, OverflowError):  # neither number nor date, a date without a zone or out of range
        return None
    return min(max(seconds, 0.0), longest)
