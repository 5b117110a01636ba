"""Whether those who follow experiments still may: one look every two seconds for all streams of this process.

A membership, an account, a token and a session end in any process of the API, and some of them by time alone. So the
database is asked, and not only those told who are near when it happens.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Collection, Generator
from contextlib import contextmanager

from sqlalchemy.exc import OperationalError

from ferret_api.events.permission import Claim

logger = logging.getLogger(__name__)

CHECK_SECONDS = 2.0
"""A stream goes on for so long at most, and for the time of a look, when its reader may see the experiment no more."""


class Follower:
    """One stream's reader, until it is ``refused``."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.refused = False
        self._end: Callable[[], None] | None = None

    def waits(self, end: Callable[[], None]) -> None:
        """From now on it waits for something to happen, unless ``end`` is called."""
        self._end = end
        if self.refused:
            end()

    def refuse(self) -> None:
        """Ends its stream, whether anything happens or not."""
        self.refused = True
        if self._end is not None:
            self._end()


class Watch:
    """Looks as long as somebody follows. Used on the event loop alone; ``permitted`` gives the claims that are good."""

    def __init__(self, permitted: Callable[[Collection[Claim]], Awaitable[Collection[Claim]]]) -> None:
        self._permitted = permitted
        self._followers: set[Follower] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def over(self, claim: Claim) -> Generator[Follower]:
        """Somebody who follows for the length of a ``with`` block, and whose claim was good a moment ago."""
        follower = Follower(claim)
        self._followers.add(follower)
        if self._task is None:
            # In a context of its own: its logs are about no request.
            self._task = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())
        try:
            yield follower
        finally:
            self._leave(follower)

    def _leave(self, follower: Follower) -> None:
        self._followers.discard(follower)
        if not self._followers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            followers = [*self._followers]
            for follower in await self._refused(followers):
                follower.refuse()

    async def _refused(self, followers: Collection[Follower]) -> Collection[Follower]:
        """Everybody, where it cannot be told: who still may follow comes back."""
        try:
            good = await self._permitted({follower.claim for follower in followers})
        except OperationalError as error:  # nor is there anything new for them to read
            logger.warning("no look at who may still follow, the database failed: %s", error.orig)
            return ()
        except Exception:
            logger.exception("the event streams end, nobody can tell who may still follow")
            return followers
        return [follower for follower in followers if follower.claim not in good]
