"""Cursors: the start of the next page, as text that callers return unchanged."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar, cast

from sqlalchemy import Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from ferret_core.protocol.errors import FerretError

T = TypeVar("T")
Q = TypeVar("Q", bound=Select[*tuple[Any, ...]])

Part = str | int | float | datetime
Key = tuple[Part | None, ...]
Columns = Sequence[InstrumentedAttribute[Any]]


class Page(NamedTuple, Generic[T]):
    """Items in order. ``next_cursor`` is None on the last page."""

    items: list[T]
    next_cursor: str | None


def seek(query: Q, columns: Columns, cursor: str | None, limit: int, *, descending: bool = False) -> Q:
    """Orders ``query`` by ``columns``, which are unique together, from after ``cursor``, with one row more than
    ``limit``.

    The extra row shows :func:`page` that more follow. Raises ``request.invalid`` for a foreign cursor.
    """
    if cursor is not None:
        position, key = tuple_(*columns), _decode(cursor, columns)
        query = query.where(position < key if descending else position > key)
    return query.order_by(*(column.desc() if descending else column for column in columns)).limit(limit + 1)


def page(rows: Sequence[T], limit: int, key: Callable[[T], Key]) -> Page[T]:
    """Returns the first ``limit`` rows found by :func:`seek`, and the cursor after them if there are more."""
    items = list(rows[:limit])
    return Page(items, encoded(key(items[-1])) if len(rows) > limit else None)


def encoded(key: Key) -> str:
    """Returns the cursor of a row with this key."""
    parts = [part.isoformat() if isinstance(part, datetime) else part for part in key]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decoded(cursor: str) -> list[Any]:
    """Returns the parts of the cursor's key, as in JSON. Raises ``ValueError`` and similar if it is malformed."""
    return cast(list[Any], json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))))


def part(given: Any, kind: type[Any]) -> Part:
    """Converts a part of a key to a column's ``kind``. Raises ``ValueError`` if it does not fit."""
    if kind is datetime:
        moment = datetime.fromisoformat(given)
        if moment.tzinfo is None:
            raise ValueError("no timezone")
        return moment
    if type(given) is not kind or (isinstance(given, int | float) and not abs(given) < _BOUNDS[kind]):
        raise ValueError(f"no {kind.__name__}")
    return given


def unissued(cursor: str, reason: str = "was not issued by this server") -> FerretError:
    """Returns ``request.invalid``."""
    return FerretError.of_field("request.invalid", "cursor", cursor, f"{reason}; omit it to start from the first page")


_BOUNDS = {int: 2**63, float: math.inf}


def _decode(cursor: str, columns: Columns) -> Key:
    try:
        pairs = zip(decoded(cursor), columns, strict=True)
        return tuple(part(given, column.type.python_type) for given, column in pairs)
    except (ValueError, TypeError, RecursionError) as error:
        raise unissued(cursor) from error
