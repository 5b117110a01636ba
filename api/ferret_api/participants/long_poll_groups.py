"""Long-poll groups of this process: one per experiment with polling participants, updated by the experiment's events.

Every change to an experiment appends an event. The poller of this process's event streams
(:mod:`ferret_api.events.streams`) finds it, and the group then reads the database once for all participants.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from typing import Annotated, NamedTuple, Self

from fastapi import Depends, Request
from sqlalchemy.exc import OperationalError

from ferret_api.access import Identity
from ferret_api.context import Context
from ferret_api.events.streams import EventPollers
from ferret_api.participants.long_poll_group import ExperimentSnapshot, LongPollGroup, look
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError

logger = logging.getLogger(__name__)

KEPT_SECONDS = 60.0
"""Lifetime of a group after its last poll."""
RETRY_SECONDS = 1.0
REMEMBERED = 200_000
"""Maximum number of cached identities."""
MEMBERSHIP = frozenset({"participant.approved", "participant.refused", "participant.revoked"})
"""Events that change the validity of a token."""


class KnownParticipant(NamedTuple):
    """The identity of a token, valid while the group's counter ``members`` does not change."""

    identity: Identity
    group: LongPollGroup
    members: int


class LongPollGroups:
    """Long-poll groups of the process, which hold at most ``most`` polls. Use it only on the event loop."""

    def __init__(self, context: Context, feeds: EventPollers, most: int) -> None:
        self.most = most
        self._context = context
        self._feeds = feeds
        self._opened: dict[str, asyncio.Task[LongPollGroup]] = {}
        self._following: set[asyncio.Task[None]] = set()
        self.changes = 0
        """Counter that increases whenever a membership change may have been missed."""
        self._known: dict[str, KnownParticipant] = {}

    @classmethod
    def of_process(cls, context: Context, feeds: EventPollers) -> Self:
        """Returns the groups of a process with the limits of its settings."""
        return cls(context, feeds, context.settings.sizing.max_held)

    @property
    def held(self) -> int:
        """Number of held polls."""
        return sum(opened.result().held for opened in self._opened.values() if _is_open(opened))

    @property
    def room(self) -> bool:
        """True if another poll can be held."""
        return self.held < self.most

    def recall(self, token: str) -> Identity | None:
        """Returns the cached identity of the token; None if it is unknown or a membership has changed since."""
        known = self._known.get(digest_bytes(token.encode()))
        if known is None or known.group.ended or known.group.members != known.members:
            return None
        return known.identity

    def remember(self, token: str, identity: Identity, group: LongPollGroup, changes: int) -> None:
        """Caches the token's ``identity``, from a read that began when :attr:`changes` had the value ``changes``."""
        if changes != self.changes or group.ended:
            return
        self._known[digest_bytes(token.encode())] = KnownParticipant(identity, group, group.members)
        if len(self._known) > REMEMBERED:
            self._known.pop(next(iter(self._known)))

    def members_changed(self, experiment_id: str) -> None:
        """Invalidates cached identities, since a participant was approved, refused or revoked."""
        self.changes += 1
        opened = self._opened.get(experiment_id)
        if opened is not None and _is_open(opened):
            opened.result().members_changed()

    async def of(self, experiment_id: str) -> LongPollGroup:
        """Returns the experiment's group; raises ``experiment.not_found``."""
        opened = self._opened.get(experiment_id)
        if opened is None:
            opened = asyncio.get_running_loop().create_task(self._open(experiment_id), context=contextvars.Context())
            self._opened[experiment_id] = opened
            opened.add_done_callback(lambda task: self._forget_unless_followed(experiment_id, task))
        group = await asyncio.shield(opened)
        group.asked_at = time.monotonic()
        return group

    async def no_older(self, experiment_id: str, seq: int) -> LongPollGroup:
        """Returns the experiment's group, which includes at least the event number ``seq``."""
        group = await self.of(experiment_id)
        if group.snapshot.tag.seq < seq:  # another process has already seen that event
            async with group.renewing:
                if group.snapshot.tag.seq < seq:
                    group.update(await self._look(experiment_id, group.snapshot))
        return group

    async def _open(self, experiment_id: str) -> LongPollGroup:
        group = LongPollGroup(await self._look(experiment_id, None), self._context.settings.sizing.polls_per_second)
        self.changes += 1
        if group.snapshot.state.finished:
            group.ended = True
            return group
        following = asyncio.get_running_loop().create_task(self._follow(experiment_id, group))
        self._following.add(following)
        following.add_done_callback(self._following.discard)
        return group

    def _forget_unless_followed(self, experiment_id: str, opened: asyncio.Task[LongPollGroup]) -> None:
        if not _is_open(opened) or opened.result().ended:
            self._opened.pop(experiment_id, None)

    async def _follow(self, experiment_id: str, group: LongPollGroup) -> None:
        try:
            with self._feeds.subscription(experiment_id, group.snapshot.tag.seq) as live:
                if live.start > group.snapshot.tag.seq:
                    await self._renew(experiment_id, group)
                async for page in live.pages():
                    if not MEMBERSHIP.isdisjoint(page.types):
                        self.members_changed(experiment_id)
                    if page.events:
                        await self._renew(experiment_id, group)
                    if not group.held and time.monotonic() - group.asked_at > KEPT_SECONDS:
                        return
        except FerretError as error:
            logger.info("held polls of %s end: %s", experiment_id, error.detail)
        finally:
            self._opened.pop(experiment_id, None)
            group.end()

    async def _renew(self, experiment_id: str, group: LongPollGroup) -> None:
        while not self._feeds.stopping:
            try:
                group.update(await self._look(experiment_id, group.snapshot))
                return
            except OperationalError as error:
                logger.warning(
                    "could not read %s for its participants, the database failed: %s", experiment_id, error.orig
                )
                await asyncio.sleep(RETRY_SECONDS)

    async def _look(self, experiment_id: str, before: ExperimentSnapshot | None) -> ExperimentSnapshot:
        context = self._context
        return await self._feeds.read(lambda: look(context.database, context.pace, experiment_id, before))


def _is_open(opened: asyncio.Task[LongPollGroup]) -> bool:
    return opened.done() and not opened.cancelled() and opened.exception() is None


async def _groups(request: Request) -> LongPollGroups:
    return request.app.state.long_poll_groups


LongPollGroupsDep = Annotated[LongPollGroups, Depends(_groups)]
