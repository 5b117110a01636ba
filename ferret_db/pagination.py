"""Lists page by page, in a fixed order or one that the caller chooses. A cursor is the start of the next page, as text.

A page begins after a key, not after a number of rows. So an insertion, deletion or change elsewhere does not repeat or
skip a row.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar, cast

from sqlalchemy import ColumnElement, Row, Select, and_, or_, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from ferret_core.protocol.errors import FerretError

T = TypeVar("T")
Q = TypeVar("Q", bound=Select[*tuple[Any, ...]])

Part = str | int | float | datetime
Key = tuple[Part | None, ...]
Columns = Sequence[InstrumentedAttribute[Any]]
Value = ColumnElement[Any] | InstrumentedAttribute[Any]

_BOUNDS = {int: 2**63, float: math.inf}
VALUE = "value"
"""Name of the sort column in a list's rows."""


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


def _decode(cursor: str, columns: Columns) -> Key:
    try:
        pairs = zip(decoded(cursor), columns, strict=True)
        return tuple(part(given, column.type.python_type) for given, column in pairs)
    except (ValueError, TypeError, RecursionError) as error:
        raise unissued(cursor) from error


class Order(NamedTuple):
    """An order by ``value``, which SQL returns as a ``kind``, then by id. Rows without a value come last in any
    direction.

    ``name`` goes into the cursor, so that a cursor of another order is rejected.
    """

    name: str
    value: Value
    kind: type[Any]
    nullable: bool
    descending: bool


def seek_in(query: Select[T], order: Order, id: Value, cursor: str | None, limit: int) -> Select[T, Any]:
    """Orders ``query`` by ``order`` from after ``cursor`` and adds the value to its columns, with one row more than
    ``limit``.

    The extra row shows :func:`page_in` that more follow. Raises ``request.invalid`` for a cursor of another list.
    """
    value = order.value.label(VALUE)
    if cursor is not None:
        query = query.where(_after_position(order, id, *_position(order, cursor)))
    first, second = (value.desc(), id.desc()) if order.descending else (value.asc(), id.asc())
    ordered = query.add_columns(value).order_by(first.nulls_last() if order.nullable else first, second)
    return ordered.limit(limit + 1)


def page_in(
    rows: Sequence[Row[T, Any]], order: Order, limit: int, id: Callable[[T], str] = attrgetter("id")
) -> Page[T]:
    """Returns the first ``limit`` rows of :func:`seek_in` and the cursor after them; ``id`` returns an item's id."""
    kept = rows[:limit]
    items = [row[0] for row in kept]
    if len(rows) <= limit:
        return Page(items, None)
    return Page(items, encoded((order.name, kept[-1][1], id(items[-1]))))


def _position(order: Order, cursor: str) -> tuple[Any, str]:
    """Returns the value and the id that the page begins after."""
    try:
        name, value, id = decoded(cursor)
        if name != order.name:
            raise ValueError("another order")
        missing = value is None and order.nullable
        return None if missing else part(value, order.kind), str(part(id, str))
    except (ValueError, TypeError, RecursionError) as error:
        raise unissued(cursor, f"is not a cursor of a list sorted by {order.name}") from error


def _after_position(order: Order, id: Value, value: Any, last: str) -> ColumnElement[bool]:
    next_id = id < last if order.descending else id > last
    if value is None:
        return and_(order.value.is_(None), next_id)
    beyond = order.value < value if order.descending else order.value > value
    # Redundant, so that an index finds where the page begins.
    from_here = order.value <= value if order.descending else order.value >= value
    behind = and_(from_here, or_(beyond, next_id))
    return or_(behind, order.value.is_(None)) if order.nullable else behind
