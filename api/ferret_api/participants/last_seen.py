"""Last-seen times of participants, including participants that only wait for work.

A poll writes nothing. The process collects the participants that polled, and writes them once a minute.
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
"""Interval of writes, longer than a held poll, so that a waiting participant polls at least once in between."""
TOGETHER = 500
"""Participants per transaction, few enough not to delay uploads."""


class Presence:
    """Participants that polled since the last write. Use it only on the event loop."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked = set[str]()

    def asked(self, participant_id: str) -> None:
        self._asked.add(participant_id)

    async def run(self) -> None:
        """Writes last-seen times until it is cancelled."""
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            try:
                await self.note()
            except OperationalError as error:
                logger.warning("last-seen times could not be written, the database failed: %s", error.orig)

    async def note(self) -> None:
        """Writes last-seen times. They are dropped on failure, since participants poll again."""
        asked, self._asked = self._asked, set()
        ids = sorted(asked)
        for first in range(0, len(ids), TOGETHER):
            await run_in_threadpool(self._note, ids[first : first + TOGETHER])

    def _note(self, participant_ids: Collection[str]) -> None:
        with self._context.database.begin() as s:
            participants.present(s, participant_ids)


@asynccontextmanager
async def noting(presence: Presence) -> AsyncGenerator[None]:
    """Writes last-seen times while the block runs."""
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
