"""Readiness of each component, with advice for components that are not ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from ferret_api.context import Context
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.system import ComponentStatus, Readiness
from ferret_db import clock, integrity, schema_version
from ferret_db.engine import installation


def look(context: Context) -> Readiness:
    database = _try(lambda: _reach(context))
    migrations = _try(lambda: schema_version.check(context.settings.database_url)) if database.ready else database
    if migrations.ready:
        database = _try(lambda: _read(context))
    broker = _try(context.broker.check)
    storage = _try(lambda: installation.claim(context.database, context.storage)) if migrations.ready else migrations
    ready = all(part.ready for part in (database, migrations, broker, storage))
    return Readiness(ready=ready, database=database, migrations=migrations, broker=broker, storage=storage)


def _reach(context: Context) -> None:
    with context.database.read() as s:
        clock.now(s)


def _read(context: Context) -> None:
    with context.database.read() as s:
        integrity.read_everywhere(s)


def _try(check: Callable[[], object]) -> ComponentStatus:
    try:
        check()
    except FerretError as error:
        return ComponentStatus(ready=False, detail=error.detail)
    except SQLAlchemyError as error:
        return ComponentStatus(
            ready=False, detail=f"the database does not answer: {type(error).__name__}; is it running?"
        )
    return ComponentStatus(ready=True, detail=None)


T = TypeVar("T")


class TtlCache(Generic[T]):
    """The result of ``look``, at most ``seconds`` old. Use it only on the event loop; ``look`` runs in a thread."""

    def __init__(self, look: Callable[[], T], seconds: float) -> None:
        self._look = look
        self._seconds = seconds
        self._until = 0.0
        self._lock = asyncio.Lock()
        self._found: T | None = None

    async def get(self) -> T:
        if self._found is None or time.monotonic() >= self._until:
            async with self._lock:
                if self._found is None or time.monotonic() >= self._until:
                    self._found = await run_in_threadpool(self._look)
                    self._until = time.monotonic() + self._seconds
        return self._found
