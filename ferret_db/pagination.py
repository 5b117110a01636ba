"""Cursors: where the next page starts, as text that callers hand back unread."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar, cast

from sqlalchemy import Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from ferret_core.protocol.errors import FerretError

T = TypeVar("T")
Q = TypeVar("Q", bound=Select[*tuple[Any, ...]])

Key = tuple[str | int | datetime, ...]
Columns = Sequence[InstrumentedAttribute[Any]]


class Page(NamedTuple, Generic[T]):
    """Some items in order; ``next_cursor`` is None on the last page."""

    items: list[T]
    next_cursor: str | None


def seek(query: Q, columns: Columns, cursor: str | None, limit: int, *, descending: bool = False) -> Q:
    """``query`` ordered by ``columns``, which are unique together, from behind ``cursor``; one row more than ``limit``.

    The extra row tells :func:`page` that more follow. Raises ``request.invalid`` for a cursor that is not ours.
    """
    if cursor is not None:
        position, key = tuple_(*columns), _decode(cursor, columns)
        query = query.where(position < key if descending else position > key)
    return query.order_by(*(column.desc() if descending else column for column in columns)).limit(limit + 1)


def page(rows: Sequence[T], limit: int, key: Callable[[T], Key]) -> Page[T]:
    """The first ``limit`` of the rows that :func:`seek` found, and the cursor behind them if there are more."""
    items = list(rows[:limit])
    return Page(items, _encode(key(items[-1])) if len(rows) > limit else None)


def _encode(key: Key) -> str:
    parts = [part.isoformat() if isinstance(part, datetime) else part for part in key]
    return base64.urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")


def _decode(cursor: str, columns: Columns) -> Key:
    try:
        parts = cast(list[Any], json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))))
        return tuple(_part(part, column.type.python_type) for part, column in zip(parts, columns, strict=True))
    except (ValueError, TypeError, RecursionError) as error:
        raise FerretError.of_field(
            "request.invalid", "cursor", cursor, "was not issued by this server; omit it to start from the first page"
        ) from error


def _part(part: Any, kind: type[Any]) -> str | int | datetime:
    if kind is datetime:
        moment = datetime.fromisoformat(part)
        if moment.tzinfo is None:
            raise ValueError("no timezone")
        return moment
    if type(part) is not kind or (isinstance(part, int) and abs(part) >= 2**63):
        raise ValueError(f"no {kind.__name__}")
    return part
