"""Notes which participants are there, also those that only wait for work.

A question writes nothing. The process remembers who asked, and tells the database once a minute, of all together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, suppress
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import OperationalError

from ferret_api.context import Context
from ferret_db.repositories import participants

logger = logging.getLogger(__name__)

NOTE_SECONDS = 60.0
"""More than a question is held: whoever waits has asked since the last time."""
TOGETHER = 500
"""In one transaction: uploads do not wait for it long."""


class Presence:
    """The participants that asked since the last note. For the event loop alone."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked = set[str]()

    def asked(self, participant_id: str) -> None:
        self._asked.add(participant_id)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            try:
                await self.note()
            except OperationalError as error:
                logger.warning("it was not noted which participants are there, the database failed: %s", error.orig)

    async def note(self) -> None:
        """Tells the database. Whoever it cannot be told of will ask again."""
        asked, self._asked = self._asked, set()
        ids = sorted(asked)
        for first in range(0, len(ids), TOGETHER):
            await run_in_threadpool(self._note, ids[first : first + TOGETHER])

    def _note(self, participant_ids: Collection[str]) -> None:
        with self._context.database.begin() as s:
            participants.present(s, participant_ids)


@asynccontextmanager
async def noting(presence: Presence) -> AsyncGenerator[None]:
    """Notes while the block runs."""
    task = asyncio.create_task(presence.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _presence(request: Request) -> Presence:
    return request.app.state.presence


PresenceDep = Annotated[Presence, Depends(_presence)]
