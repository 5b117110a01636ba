"""The database's clock. Every deadline, lease and timestamp comes from it, so the clocks of hosts may differ."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, DateTime, Dialect, Float, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A timezone-aware UTC datetime on both databases. SQLite stores it as text that sorts by time."""

    impl = DateTime(timezone=True)
    cache_ok = True

    @property
    def python_type(self) -> type[datetime]:
        return datetime

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no timezone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def utcnow() -> ColumnElement[datetime]:
    """The time of the call. The transaction may have started earlier, before a long wait for a lock."""
    return _UtcNow()


class _UtcNow(FunctionElement[datetime]):
    type = UtcDateTime()
    inherit_cache = True


@compiles(_UtcNow, "sqlite")
def _sqlite(element: _UtcNow, compiler: Any, **kw: Any) -> str:
    # Milliseconds, padded to the six digits that SQLAlchemy writes: texts of equal length sort by time.
    return "strftime('%Y-%m-%d %H:%M:%f000', 'now')"


@compiles(_UtcNow, "postgresql")
def _postgresql(element: _UtcNow, compiler: Any, **kw: Any) -> str:
    return "clock_timestamp()"


class seconds_between(FunctionElement[float]):
    """Seconds from the first time to the second. SQLite stores times as text and has no intervals."""

    type = Float()
    inherit_cache = True


@compiles(seconds_between, "sqlite")
def _sqlite_seconds(element: seconds_between, compiler: Any, **kw: Any) -> str:
    begin, end = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"((julianday({end}) - julianday({begin})) * 86400.0)"


@compiles(seconds_between, "postgresql")
def _postgresql_seconds(element: seconds_between, compiler: Any, **kw: Any) -> str:
    begin, end = (compiler.process(clause, **kw) for clause in element.clauses)
    return f"CAST(EXTRACT(EPOCH FROM {end} - {begin}) AS DOUBLE PRECISION)"


def now(s: Session) -> datetime:
    """Returns the database's time in UTC."""
    return s.scalars(select(utcnow())).one()
