"""What one experiment's participants are told from memory, and those of them who are held until it changes."""

from __future__ import annotations

import asyncio
import contextvars
import math
import time
from contextlib import suppress

from ferret_api.participants.experiment_snapshot import Stage

TOGETHER = 10
"""Participants woken in one turn: each asks the database what it has to do."""
FEW = 20
"""So many are told at once of every step of the others; more hear of it when they ask again."""


class Board:
    """Used on the event loop alone. At most ``per_second`` of the held are woken within a second."""

    def __init__(self, stage: Stage, per_second: float) -> None:
        self.stage = stage
        self.ended = False
        """Nobody keeps the stage up to date any more."""
        self.asked_at = time.monotonic()
        self.renewing = asyncio.Lock()
        self.members = 0
        """Counts up when it changes who takes part: nobody is recognised from memory whom it has not seen since."""
        self._per_second = per_second
        self._resting: dict[str, float] = {}
        self._held: dict[str, asyncio.Future[bool]] = {}
        self._waking: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def few(self) -> bool:
        """Whether so few are held that each can be told of everything."""
        return len(self._held) <= FEW

    def may_have_work(self, participant_id: str) -> bool:
        """Whether only the database knows."""
        return participant_id in self.stage.due and time.monotonic() >= self._rests_until(participant_id)

    def rests(self, participant_id: str, mark: str, seconds: float | None) -> None:
        """The participant had nothing to do at ``mark``, and will not within the next ``seconds``; None: at all."""
        if mark == self.stage.tag.mark:
            self._resting[participant_id] = math.inf if seconds is None else time.monotonic() + seconds

    async def hold(self, participant_id: str, seconds: float) -> bool:
        """Waits for a change, for ``seconds`` at most, or until the participant may have work again.

        False: its question is to be answered now, since a newer one of the participant has come.
        """
        if (older := self._held.pop(participant_id, None)) is not None and not older.done():
            older.set_result(False)
        changed = asyncio.get_running_loop().create_future()
        self._held[participant_id] = changed
        rest = self._rests_until(participant_id) - time.monotonic() if participant_id in self.stage.due else math.inf
        try:
            with suppress(TimeoutError):
                return await asyncio.wait_for(changed, max(0.0, min(seconds, rest)))
            return True
        finally:
            if self._held.get(participant_id) is changed:
                del self._held[participant_id]

    def update(self, stage: Stage) -> None:
        """The stage now; one that was read before what is known counts for nothing."""
        if stage.tag.seq < self.stage.tag.seq:
            return
        before, self.stage = self.stage, stage
        if stage.tag.mark != before.tag.mark:
            self._resting.clear()
            self._wake()
        elif stage.tag.seq != before.tag.seq and self.few:
            self._wake()

    def members_changed(self) -> None:
        """Somebody was approved, refused or revoked: all who are held are looked at again."""
        self.members += 1
        self._wake()

    def end(self) -> None:
        """Answers all at once."""
        self.ended = True
        if self._waking is not None:
            self._waking.cancel()
        for changed in self._held.values():
            _set(changed)

    def _wake(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
        # Those who may have work come first. In a context of its own: it belongs to no request.
        order = sorted(self._held, key=lambda participant_id: participant_id not in self.stage.due)
        held = [self._held[participant_id] for participant_id in order]
        self._waking = asyncio.get_running_loop().create_task(self._wake_all(held), context=contextvars.Context())

    async def _wake_all(self, held: list[asyncio.Future[bool]]) -> None:
        for first in range(0, len(held), TOGETHER):
            for changed in held[first : first + TOGETHER]:
                _set(changed)
            await asyncio.sleep(TOGETHER / self._per_second)

    def _rests_until(self, participant_id: str) -> float:
        return self._resting.get(participant_id, -math.inf)


def _set(changed: asyncio.Future[bool]) -> None:
    if not changed.done():
        changed.set_result(True)
