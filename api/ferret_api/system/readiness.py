"""Readiness of each component, with advice for components that are not ready."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from ferret_api.context import Context
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.system import ComponentStatus, Readiness
from ferret_db import clock, integrity, migrate
from ferret_db.engine import installation


def look(context: Context) -> Readiness:
    database = _try(lambda: _reach(context))
    migrations = _try(lambda: migrate.check(context.settings.database_url)) if database.ready else database
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
