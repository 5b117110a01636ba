"""Access checks of open event streams: one query every two seconds for all streams of this process.

Memberships, accounts, tokens and sessions can end in any API process, and some expire. So each process checks the
database.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from ferret_api.auth.admin_token import AdminToken
from ferret_core.protocol.roles import Role
from ferret_db.database import Database
from ferret_db.repositories import projects, sessions, user_tokens
from ferret_db.tables import User


class Claim(NamedTuple):
    """The credential of a stream, a token or the secret of a session, and the experiment that it follows."""

    credential: str
    experiment_id: str


def permitted(database: Database, admin: AdminToken, claims: Collection[Claim]) -> set[Claim]:
    """Returns the claims that are still valid. All of them were valid when their streams began."""
    lasting = {claim for claim in claims if admin.is_token(claim.credential)}
    with database.read() as s:
        users = _users(s, admin, {claim.credential for claim in claims} - {claim.credential for claim in lasting})
        seen = projects.seen(s, {(users[who].id, experiment) for who, experiment in claims if who in users})
    return lasting | {claim for claim in claims if _is_good(claim, users, seen)}


def _users(s: Session, admin: AdminToken, credentials: set[str]) -> Mapping[str, User]:
    tokens = {credential for credential in credentials if credential.startswith(user_tokens.PREFIX)}
    shown = user_tokens.all_shown(s, tokens)
    by_token = {text: found.user for text, found in shown.items() if found.user.enabled and not found.expired}
    return by_token | sessions.users_of(s, credentials - tokens, admin.fingerprint)


def _is_good(claim: Claim, users: Mapping[str, User], seen: Collection[tuple[str, str]]) -> bool:
    user = users.get(claim.credential)
    return user is not None and (user.role == Role.ADMIN or (user.id, claim.experiment_id) in seen)


logger = logging.getLogger(__name__)

CHECK_SECONDS = 2.0
"""Interval of the checks. A stream ends at most this long, plus one query, after its reader loses access."""


class StreamReader:
    """The reader of one stream, until it is ``refused``."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.refused = False
        self._end: Callable[[], None] | None = None

    def waits(self, end: Callable[[], None]) -> None:
        """Sets ``end``, which ends the reader's wait for events when it is refused."""
        self._end = end
        if self.refused:
            end()

    def refuse(self) -> None:
        """Refuses the reader and ends its wait for events."""
        self.refused = True
        if self._end is not None:
            self._end()


class AccessCheck:
    """Periodic access checks of open streams. ``permitted`` returns the valid claims. Use it only on the event loop."""

    def __init__(self, permitted: Callable[[Collection[Claim]], Awaitable[Collection[Claim]]]) -> None:
        self._permitted = permitted
        self._followers: set[StreamReader] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def over(self, claim: Claim) -> Generator[StreamReader]:
        """Watches a reader with a valid claim for the duration of a ``with`` block."""
        follower = StreamReader(claim)
        self._followers.add(follower)
        if self._task is None:
            # A separate context, so that its logs name no request.
            self._task = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())
        try:
            yield follower
        finally:
            self._leave(follower)

    def _leave(self, follower: StreamReader) -> None:
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

    async def _refused(self, followers: Collection[StreamReader]) -> Collection[StreamReader]:
        """Returns the readers without access; all of them if the check fails, since readers with access reconnect."""
        try:
            good = await self._permitted({follower.claim for follower in followers})
        except OperationalError as error:  # without the database there is nothing new to read either
            logger.warning("could not check access of event streams, the database failed: %s", error.orig)
            return ()
        except Exception:
            logger.exception("the event streams end, because their access could not be checked")
            return followers
        return [follower for follower in followers if follower.claim not in good]
