"""Responses to participants that poll for work, held while nothing changes.

A poll without a tag is answered from the database. A poll with the tag of an earlier response is answered from memory,
unless there may be work: with 304 if nothing has changed, or with the progress of the round.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from ferret_api.access import Bearer, Identity, participant_token
from ferret_api.context import Context
from ferret_api.participants import next_assignment
from ferret_api.participants.batches import RequestBatchers
from ferret_api.participants.last_seen import Presence
from ferret_api.participants.long_poll_group import LongPollGroup, PollTag
from ferret_api.participants.long_poll_groups import LongPollGroups
from ferret_core.protocol.resources.participants import NextAssignment, Waiting
from ferret_db.engine.wait_reason import WaitStatus as Awaiting

HOLD_SECONDS = 30
"""Maximum hold time of a poll, shorter than the timeout of most proxies."""
WHOLE = 0.9
"""Fraction of its time from which a poll counts as held to the end. It allows for inexact clocks."""


class PollRequest(NamedTuple):
    """A poll: the ``tag`` of the participant's last response, and the ``wait`` in seconds that it accepts."""

    tag: PollTag | None
    wait: int


class PollResponse(NamedTuple):
    """A response to a poll. ``body`` is None if nothing has changed.

    ``wait`` is the hold time of the next poll in seconds, 0 for none. ``held`` is the hold time of this one."""

    body: NextAssignment | None
    tag: PollTag
    pause: float
    wait: int
    held: float = 0.0


class LongPoll:
    """One poll of one participant."""

    def __init__(
        self,
        context: Context,
        groups: LongPollGroups,
        batches: RequestBatchers,
        presence: Presence,
        bearer: Bearer,
        asked: PollRequest,
    ) -> None:
        self._context = context
        self._groups = groups
        self._batches = batches
        self._presence = presence
        self._bearer = bearer
        self._asked = asked
        self._wait = min(asked.wait, HOLD_SECONDS)
        self._held = 0.0

    async def answer(self) -> PollResponse:
        """Returns the response, after a wait if nothing changes. Raises the errors of ``require_enrolled``."""
        changes = self._groups.changes
        if (tag := self._asked.tag) is None:
            found = await self._ask()
            self._presence.asked(found.participant.id)
            if found.lease is None and found.step is None and not found.state.finished:  # it will poll again with a tag
                group = await self._groups.of(found.participant.experiment_id)
                self._remember(found.participant, group, changes)
            return self._found(found)
        participant = self._recalled()
        if participant is not None:
            self._context.limits.admit_participant(participant.id)
            group = await self._groups.no_older(participant.experiment_id, tag.seq)
        else:
            participant = await self._batches.strangers.do(await participant_token(self._context, self._bearer))
            group = await self._groups.no_older(participant.experiment_id, tag.seq)
            self._remember(participant, group, changes)
        self._presence.asked(participant.id)
        return await self._from_group(group, participant, tag)

    async def _from_group(self, group: LongPollGroup, participant: Identity, tag: PollTag) -> PollResponse:
        until, members = time.monotonic() + self._wait, group.members
        while True:
            if group.may_have_work(participant.id) or group.members != members:
                members, changes = group.members, self._groups.changes
                found = await self._ask()
                if (
                    found.lease is not None
                    or found.step is not None
                    or found.tag.mark != tag.mark
                    or found.participant.pending != participant.pending
                ):
                    return self._found(found)
                self._remember(participant, group, changes)
                group.rests(participant.id, found.tag.mark, found.rest)
                if group.snapshot.tag.mark != found.tag.mark:  # the experiment is changing right now
                    return self._found(found)
            elif self._is_news(group, tag):
                return self._changed(group, participant)
            elif not await self._hold(group, participant, until - time.monotonic()):
                return (
                    self._changed(group, participant) if group.snapshot.tag.seq != tag.seq else self._unchanged(group)
                )

    def _is_news(self, group: LongPollGroup, tag: PollTag) -> bool:
        """Returns True if the change justifies an immediate response."""
        if group.snapshot.tag.mark != tag.mark:
            return True
        return group.snapshot.tag.seq != tag.seq and (group.few or not self._wait)

    async def _hold(self, group: LongPollGroup, participant: Identity, seconds: float) -> bool:
        """Holds the poll; returns True if the group should be checked again."""
        if seconds <= 0 or group.ended or not self._groups.room:
            return False
        begin = time.monotonic()
        try:
            return await group.hold(participant.id, seconds)
        finally:
            self._held += time.monotonic() - begin

    def _recalled(self) -> Identity | None:
        return None if self._bearer is None else self._groups.recall(self._bearer.credentials)

    def _remember(self, participant: Identity, group: LongPollGroup, changes: int) -> None:
        if self._bearer is not None:
            self._groups.remember(self._bearer.credentials, participant, group, changes)

    async def _ask(self) -> next_assignment.Found:
        """The cache may recognise a removed participant for a moment; the database gives it no work."""
        return await self._batches.questions.do(await participant_token(self._context, self._bearer))

    def _found(self, found: next_assignment.Found) -> PollResponse:
        return self._answer(found.body(self._pause(found.waiting)), found.tag)

    def _changed(self, group: LongPollGroup, participant: Identity) -> PollResponse:
        snapshot = group.snapshot
        awaited = next_assignment.approved(participant, snapshot.waiting)
        body = NextAssignment(
            experiment_state=snapshot.state,
            retry_after_seconds=self._pause(awaited),
            assignment=None,
            waiting=awaited and Waiting.model_validate(awaited._asdict()),
        )
        return self._answer(body, snapshot.tag)

    def _unchanged(self, group: LongPollGroup) -> PollResponse:
        # A poll that was replaced by a newer one pauses before the next.
        whole = self._held >= WHOLE * self._wait > 0
        pause = 0.0 if whole else self._context.pace.seconds(group.snapshot.waiting)
        return PollResponse(None, group.snapshot.tag, pause, self._holds, self._held)

    def _answer(self, body: NextAssignment, tag: PollTag) -> PollResponse:
        return PollResponse(body, tag, body.retry_after_seconds, self._holds, self._held)

    def _pause(self, waiting: Awaiting | None) -> float:
        # Without a tag, the participant or a proxy may not pass tags on, so the next poll may not be held.
        if self._asked.tag is not None and self._holds:
            return self._context.pace.seconds_before_hold()
        return self._context.pace.seconds(waiting)

    @property
    def _holds(self) -> int:
        return self._wait if self._groups.room else 0
