"""When idle participants ask again: the later the more there are, so that together they ask a bounded number of times a
second. Jitter keeps those who were told at one moment from coming back at one moment."""

from __future__ import annotations

import math
import random
import time

from sqlalchemy.orm import Session

from ferret_api.sizing import SPREAD, Sizing
from ferret_core.protocol.states import Awaited
from ferret_db.engine.wait_reason import Waiting
from ferret_db.repositories import participants

NEARLY = 0.9
"""The part of the participants or contributions that has arrived when the next step is taken to be near."""
PATIENCE = 4.0
"""How many times as long is waited for what is not near."""
HASTE = 0.1
"""The part of the shortest pause after which a question may come that will be held."""
COUNT_SECONDS = 5.0
"""How old the number of participants may be."""


class Pace:
    """Chooses the pauses of a whole service: any of its processes may run one. For any thread."""

    def __init__(self, sizing: Sizing) -> None:
        self._shortest = sizing.poll_seconds
        self._longest = sizing.longest_poll_seconds / (1 + SPREAD)
        self._per_second = sizing.polls_per_second
        self._enrolled = 0
        self._count_again_at = -math.inf

    def count(self, s: Session) -> None:
        """Counts the participants, unless it was done a moment ago."""
        if (now := time.monotonic()) >= self._count_again_at:
            self._count_again_at = now + COUNT_SECONDS  # first, so that other threads do not count too
            self._enrolled = participants.count_active(s)

    def seconds(self, waiting: Waiting | None) -> float:
        """How long a participant that waits for ``waiting`` should pause.

        On average ``poll_seconds``, or what keeps all participants together at ``polls_per_second``; :data:`PATIENCE`
        times the latter while no round is about to open. At most ``longest_poll_seconds``.
        """
        return self._jittered(self._shortest, self._turn if is_near(waiting) else PATIENCE * self._turn)

    def seconds_before_hold(self) -> float:
        """How long one should pause whose next question will be held: all are told of a change at one moment."""
        return self._jittered(HASTE * self._shortest, self._turn)

    @property
    def _turn(self) -> float:
        """In which every participant can ask once."""
        return self._enrolled / self._per_second

    def _jittered(self, shortest: float, seconds: float) -> float:
        return min(max(shortest, seconds), self._longest) * random.uniform(1 - SPREAD, 1 + SPREAD)


def is_near(waiting: Waiting | None) -> bool:
    """Whether work may come soon: the round's model is being made, or nearly all whom the next step needs are there."""
    if waiting is None:
        return False
    if waiting.awaited in {Awaited.ROUND, Awaited.MODEL}:
        return True
    return waiting.total > 0 and waiting.done >= NEARLY * waiting.total
