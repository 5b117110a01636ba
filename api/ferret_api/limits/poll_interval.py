"""Poll interval of idle participants.

It grows with their number, so that their total rate is bounded. Jitter spreads participants that poll simultaneously.
"""

from __future__ import annotations

import math
import random
import time

from sqlalchemy.orm import Session

from ferret_api.sizing import SPREAD, Sizing
from ferret_core.protocol.states import WaitReason
from ferret_db.engine.wait_reason import WaitStatus
from ferret_db.repositories import participants

NEARLY = 0.9
"""Fraction of the awaited participants or contributions from which the next step counts as near."""
PATIENCE = 4.0
"""Factor of the interval while the next step is not near."""
HASTE = 0.1
"""Fraction of the shortest interval after which a poll that will be held may come."""
COUNT_SECONDS = 5.0
"""Maximum age of the number of participants."""


class PollInterval:
    """Poll intervals for all participants of the service. Each process has one. It is thread-safe."""

    def __init__(self, sizing: Sizing) -> None:
        self._shortest = sizing.poll_seconds
        self._longest = sizing.longest_poll_seconds / (1 + SPREAD)
        self._per_second = sizing.polls_per_second
        self._enrolled = 0
        self._count_again_at = -math.inf

    def count(self, s: Session) -> None:
        """Counts the participants, at most every :data:`COUNT_SECONDS`."""
        if (now := time.monotonic()) >= self._count_again_at:
            self._count_again_at = now + COUNT_SECONDS  # first, so that other threads do not count too
            self._enrolled = participants.count_active(s)

    def seconds(self, waiting: WaitStatus | None) -> float:
        """Returns the seconds until a participant that waits for ``waiting`` should poll again.

        The mean is ``poll_seconds``, or the interval that keeps all participants together at ``polls_per_second``, if
        that is longer. While no step is near, that interval is multiplied by :data:`PATIENCE`. The maximum is
        ``longest_poll_seconds``.
        """
        return self._jittered(self._shortest, self._turn if is_near(waiting) else PATIENCE * self._turn)

    def seconds_before_hold(self) -> float:
        """Returns the seconds until a participant polls again if that poll will be held.

        The jitter matters here, since all held polls are answered at the moment of a change."""
        return self._jittered(HASTE * self._shortest, self._turn)

    @property
    def _turn(self) -> float:
        return self._enrolled / self._per_second

    def _jittered(self, shortest: float, seconds: float) -> float:
        return min(max(shortest, seconds), self._longest) * random.uniform(1 - SPREAD, 1 + SPREAD)


def is_near(waiting: WaitStatus | None) -> bool:
    """Returns True if work may come soon.

    This is the case if the next round or model is being computed, or nearly all that the next step needs have arrived.
    """
    if waiting is None:
        return False
    if waiting.awaited in {WaitReason.ROUND, WaitReason.MODEL}:
        return True
    return waiting.total > 0 and waiting.done >= NEARLY * waiting.total
