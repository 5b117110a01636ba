"""The boards of this process: one for each experiment whose participants ask, kept up to date by its events.

Whatever process changes an experiment, it appends an event: the poller that serves the event streams of this process
(:mod:`ferret_api.events.streams`) finds it, and the board then looks at the database once, for all participants.
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
from ferret_api.events.streams import Feeds
from ferret_api.participants.experiment_snapshot import Stage, look
from ferret_api.participants.long_poll_group import Board
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError

logger = logging.getLogger(__name__)

KEPT_SECONDS = 60.0
"""A board is kept for so long after the last question."""
RETRY_SECONDS = 1.0
REMEMBERED = 200_000
"""Participants that are recognised from memory."""
MEMBERSHIP = frozenset({"participant.approved", "participant.refused", "participant.revoked"})
"""Events that change what a token is good for."""


class Known(NamedTuple):
    """Whose token it is, as long as the board still counts this many changes of its ``members``."""

    identity: Identity
    board: Board
    members: int


class Boards:
    """Used on the event loop alone. Holds ``most`` questions at a time."""

    def __init__(self, context: Context, feeds: Feeds, most: int) -> None:
        self.most = most
        self._context = context
        self._feeds = feeds
        self._opened: dict[str, asyncio.Task[Board]] = {}
        self._following: set[asyncio.Task[None]] = set()
        self.changes = 0
        """Counts up whenever something may have been missed about who takes part."""
        self._known: dict[str, Known] = {}

    @classmethod
    def of_process(cls, context: Context, feeds: Feeds) -> Self:
        """As the settings say."""
        return cls(context, feeds, context.settings.sizing.max_held)

    @property
    def held(self) -> int:
        """Questions that wait for an answer."""
        return sum(opened.result().held for opened in self._opened.values() if _is_open(opened))

    @property
    def room(self) -> bool:
        """Whether one more can be held."""
        return self.held < self.most

    def recall(self, token: str) -> Identity | None:
        """Whose token it is, if that was found out since it last changed who takes part in its experiment."""
        known = self._known.get(digest_bytes(token.encode()))
        if known is None or known.board.ended or known.board.members != known.members:
            return None
        return known.identity

    def remember(self, token: str, identity: Identity, board: Board, changes: int) -> None:
        """The token was found to be ``identity``'s in a look that began when :attr:`changes` was ``changes``."""
        if changes != self.changes or board.ended:
            return
        self._known[digest_bytes(token.encode())] = Known(identity, board, board.members)
        if len(self._known) > REMEMBERED:
            self._known.pop(next(iter(self._known)))

    def members_changed(self, experiment_id: str) -> None:
        """A participant of the experiment was approved, refused or revoked."""
        self.changes += 1
        opened = self._opened.get(experiment_id)
        if opened is not None and _is_open(opened):
            opened.result().members_changed()

    async def of(self, experiment_id: str) -> Board:
        """The experiment's board; raises ``experiment.not_found``."""
        opened = self._opened.get(experiment_id)
        if opened is None:
            opened = asyncio.get_running_loop().create_task(self._open(experiment_id), context=contextvars.Context())
            self._opened[experiment_id] = opened
            opened.add_done_callback(lambda task: self._forget_unless_followed(experiment_id, task))
        board = await asyncio.shield(opened)
        board.asked_at = time.monotonic()
        return board

    async def no_older(self, experiment_id: str, seq: int) -> Board:
        """The same, once it knows of the experiment's event number ``seq``."""
        board = await self.of(experiment_id)
        if board.stage.tag.seq < seq:  # another process was quicker to hear of it
            async with board.renewing:
                if board.stage.tag.seq < seq:
                    board.update(await self._look(experiment_id, board.stage))
        return board

    async def _open(self, experiment_id: str) -> Board:
        board = Board(await self._look(experiment_id, None), self._context.settings.sizing.polls_per_second)
        self.changes += 1
        if board.stage.state.finished:
            board.ended = True
            return board
        following = asyncio.get_running_loop().create_task(self._follow(experiment_id, board))
        self._following.add(following)
        following.add_done_callback(self._following.discard)
        return board

    def _forget_unless_followed(self, experiment_id: str, opened: asyncio.Task[Board]) -> None:
        if not _is_open(opened) or opened.result().ended:
            self._opened.pop(experiment_id, None)

    async def _follow(self, experiment_id: str, board: Board) -> None:
        try:
            with self._feeds.subscription(experiment_id, board.stage.tag.seq) as live:
                if live.start > board.stage.tag.seq:
                    await self._renew(experiment_id, board)
                async for page in live.pages():
                    if not MEMBERSHIP.isdisjoint(page.types):
                        self.members_changed(experiment_id)
                    if page.events:
                        await self._renew(experiment_id, board)
                    if not board.held and time.monotonic() - board.asked_at > KEPT_SECONDS:
                        return
        except FerretError as error:
            logger.info("no more is told to the participants of %s: %s", experiment_id, error.detail)
        finally:
            self._opened.pop(experiment_id, None)
            board.end()

    async def _renew(self, experiment_id: str, board: Board) -> None:
        while not self._feeds.stopping:
            try:
                board.update(await self._look(experiment_id, board.stage))
                return
            except OperationalError as error:
                logger.warning("no look at %s for its participants, the database failed: %s", experiment_id, error.orig)
                await asyncio.sleep(RETRY_SECONDS)

    async def _look(self, experiment_id: str, before: Stage | None) -> Stage:
        context = self._context
        return await self._feeds.read(lambda: look(context.database, context.pace, experiment_id, before))


def _is_open(opened: asyncio.Task[Board]) -> bool:
    return opened.done() and not opened.cancelled() and opened.exception() is None


async def _boards(request: Request) -> Boards:
    return request.app.state.boards


BoardsDep = Annotated[Boards, Depends(_boards)]
