"""Resources that the process keeps between requests, and dependencies that give them to endpoints."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Annotated

from fastapi import Depends, Request

from ferret_api.auth import admin_token
from ferret_api.auth.admin_token import AdminToken
from ferret_api.auth.passwords import PasswordThreads
from ferret_api.broker import Broker
from ferret_api.downloads import Downloads
from ferret_api.limits.poll_interval import PollInterval
from ferret_api.limits.rate_limits import FailedSignIns, RateLimits, UploadGate
from ferret_api.settings import ApiSettings
from ferret_core.storage import Storage
from ferret_db.database import Database
from ferret_db.row_visibility import NOTHING

WRITERS = 8
"""Number of threads that write contributions to disk."""


@dataclass(frozen=True)
class Context:
    """Settings, connections, and the event ``stopping``, which is set when the process shuts down."""

    settings: ApiSettings
    admin: AdminToken
    broker: Broker
    database: Database
    storage: Storage
    limits: RateLimits
    pace: PollInterval
    failed_sign_ins: FailedSignIns = field(default_factory=FailedSignIns)
    downloads: Downloads = field(default_factory=Downloads)
    passwords: PasswordThreads = field(default_factory=PasswordThreads)
    uploads: UploadGate = field(default_factory=UploadGate)
    writers: Executor = field(default_factory=lambda: ThreadPoolExecutor(WRITERS, "ferret-writer"))
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def open(cls, settings: ApiSettings) -> Context:
        broker = Broker(settings.broker_url)
        return cls(
            settings=settings,
            admin=admin_token.load(settings),
            broker=broker,
            database=Database(settings.database_url, broker.send, settings.running_experiments),
            storage=settings.open_storage(),
            limits=RateLimits(settings),
            pace=PollInterval(settings.sizing),
        )

    def narrowed(self) -> Context:
        """Returns a copy with a database in which no experiment is visible."""
        return replace(self, database=self.database.within(NOTHING))

    def close(self) -> None:
        self.writers.shutdown()
        self.passwords.close()
        self.database.dispose()
        self.broker.close()
        self.limits.close()


async def _context(request: Request) -> Context:  # a plain function would run in a thread
    return request.app.state.narrowed


async def _whole(request: Request) -> Context:
    return request.app.state.context


ContextDep = Annotated[Context, Depends(_context)]
"""Context with a database that shows no experiment. The caller has one that shows the experiments it may see."""
WholeContext = Annotated[Context, Depends(_whole)]
"""Context with a database that shows every experiment, for endpoints that look up the participant's own rows."""
