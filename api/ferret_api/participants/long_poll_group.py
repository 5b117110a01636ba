"""State of one experiment in memory, and the held polls of its participants."""

from __future__ import annotations

import asyncio
import contextvars
import math
import re
import time
from contextlib import suppress
from typing import NamedTuple, Self

from ferret_api.limits.poll_interval import PollInterval
from ferret_core.protocol.states import ExperimentState
from ferret_db.database import Database
from ferret_db.engine import secure_sums
from ferret_db.engine.wait_reason import WaitStatus, gives_work, mark, sums_up, waiting
from ferret_db.repositories import assignments, experiments, rounds


class ExperimentSnapshot(NamedTuple):
    """A snapshot of an experiment. ``due`` holds the ids of participants that may have work.

    ``due`` is set when the mark changes. Until the next mark, participants only leave it."""

    tag: PollTag
    state: ExperimentState
    waiting: WaitStatus | None
    due: frozenset[str]


def look(
    database: Database, pace: PollInterval, experiment_id: str, before: ExperimentSnapshot | None
) -> ExperimentSnapshot:
    """Reads the snapshot; raises ``experiment.not_found``. Reuses ``due`` of ``before`` if the mark is the same."""
    with database.read() as s:
        found = rounds.with_latest(s, [experiment_id]).get(experiment_id)
        if found is None:
            raise experiments.unknown(experiment_id)
        experiment, round_ = found
        tag = PollTag(experiment.last_event_seq, mark(experiment, round_))
        if before is not None and before.tag.mark == tag.mark:
            due = before.due
        elif round_ is not None and gives_work(experiment, round_):
            due = assignments.unfinished_participants(s, round_.id)
        elif round_ is not None and sums_up(experiment, round_):
            due = frozenset(secure_sums.pending(s, round_))
        else:
            due = frozenset[str]()
        pace.count(s)
        return ExperimentSnapshot(tag, experiment.state, waiting(s, experiment, round_), due)


_TAG = re.compile(r'"([0-9]{1,18})/([0-9.]{1,100})"')
_WAIT = re.compile(r"(?:^|[,;])\s*wait\s*=\s*\"?([0-9]{1,6})(?![0-9])", re.IGNORECASE)


class PollTag(NamedTuple):
    """A tag: ``mark`` determines the participant's next step, ``seq`` (the newest event) the progress of others."""

    seq: int
    mark: str

    @classmethod
    def read(cls, header: str) -> Self | None:
        """Returns the first tag of this format in ``If-None-Match``; None without any."""
        found = _TAG.search(header)
        return None if found is None else cls(int(found[1]), found[2])

    def __str__(self) -> str:
        """Returns a weak tag, since responses with the same tag may differ in their poll interval."""
        return f'W/"{self.seq}/{self.mark}"'


def wait_seconds(prefer: str) -> int:
    """Returns N of ``Prefer: wait=N``; 0 without it."""
    found = _WAIT.search(prefer)
    return 0 if found is None else int(found[1])


TOGETHER = 10
"""Participants woken together. Each then reads its next step from the database."""
FEW = 20
"""Maximum number of held polls that are answered at every progress. Beyond it, progress waits for the next poll."""


class LongPollGroup:
    """An experiment's state and its held polls. Wakes ``per_second`` a second at most. Only for the event loop."""

    def __init__(self, snapshot: ExperimentSnapshot, per_second: float) -> None:
        self.snapshot = snapshot
        self.ended = False
        """True after updates of the snapshot have ended."""
        self.asked_at = time.monotonic()
        self.renewing = asyncio.Lock()
        self.members = 0
        """Counter of membership changes. A change invalidates the cached identities of participants."""
        self._per_second = per_second
        self._resting: dict[str, float] = {}
        self._held: dict[str, asyncio.Future[bool]] = {}
        self._waking: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        return len(self._held)

    @property
    def few(self) -> bool:
        """True if few enough polls are held to answer each at every progress."""
        return len(self._held) <= FEW

    def may_have_work(self, participant_id: str) -> bool:
        """Returns True if the participant may have work, which must be read from the database."""
        return participant_id in self.snapshot.due and time.monotonic() >= self._rests_until(participant_id)

    def rests(self, participant_id: str, mark: str, seconds: float | None) -> None:
        """Records that the participant has no work at ``mark`` for ``seconds``; None: until the mark changes."""
        if mark == self.snapshot.tag.mark:
            self._resting[participant_id] = math.inf if seconds is None else time.monotonic() + seconds

    async def hold(self, participant_id: str, seconds: float) -> bool:
        """Waits for a change, for at most ``seconds``, or until the participant may have work again.

        Returns False if a newer poll of the participant has replaced this one, which must then be answered.
        """
        if (older := self._held.pop(participant_id, None)) is not None and not older.done():
            older.set_result(False)
        changed = asyncio.get_running_loop().create_future()
        self._held[participant_id] = changed
        rest = self._rests_until(participant_id) - time.monotonic() if participant_id in self.snapshot.due else math.inf
        try:
            with suppress(TimeoutError):
                return await asyncio.wait_for(changed, max(0.0, min(seconds, rest)))
            return True
        finally:
            if self._held.get(participant_id) is changed:
                del self._held[participant_id]

    def update(self, snapshot: ExperimentSnapshot) -> None:
        """Sets the snapshot and wakes held polls. Ignores a snapshot older than the current one."""
        if snapshot.tag.seq < self.snapshot.tag.seq:
            return
        before, self.snapshot = self.snapshot, snapshot
        if snapshot.tag.mark != before.tag.mark:
            self._resting.clear()
            self._wake()
        elif snapshot.tag.seq != before.tag.seq and self.few:
            self._wake()

    def members_changed(self) -> None:
        """Wakes all held polls, since a participant was approved, refused or revoked."""
        self.members += 1
        self._wake()

    def end(self) -> None:
        """Ends the group and wakes all held polls immediately."""
        self.ended = True
        if self._waking is not None:
            self._waking.cancel()
        for changed in self._held.values():
            _set(changed)

    def _wake(self) -> None:
        if self._waking is not None:
            self._waking.cancel()
        # Participants that may have work come first. A separate context, since the task belongs to no request.
        order = sorted(self._held, key=lambda participant_id: participant_id not in self.snapshot.due)
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
