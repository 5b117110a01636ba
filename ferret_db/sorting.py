"""Lists in an order that the caller chooses, page by page.

A page begins behind a value and an id, not behind a number of rows: what is added, removed or changed meanwhile moves
no other row onto two pages or onto none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Row, Select, and_, or_
from sqlalchemy.orm import InstrumentedAttribute

from ferret_db.pagination import Page, decoded, encoded, part, unissued

T = TypeVar("T")
Value = ColumnElement[Any] | InstrumentedAttribute[Any]

VALUE = "value"
"""What the column that a list is sorted by is called in its rows."""


class Order(NamedTuple):
    """By ``value``, which SQL gives as a ``kind``, then by id. Rows without a value come last, whichever way it goes.

    ``name`` goes into the cursor, so that none is taken for that of another order.
    """

    name: str
    value: Value
    kind: type[Any]
    nullable: bool
    descending: bool


def seek_in(query: Select[T], order: Order, id: Value, cursor: str | None, limit: int) -> Select[T, Any]:
    """``query`` in the ``order`` from behind ``cursor``, with the value beside what it selects; one row more than
    ``limit``, which tells :func:`page_in` that more follow. Raises ``request.invalid`` for a cursor of another list."""
    value = order.value.label(VALUE)
    if cursor is not None:
        query = query.where(_behind(order, id, *_position(order, cursor)))
    first, second = (value.desc(), id.desc()) if order.descending else (value.asc(), id.asc())
    ordered = query.add_columns(value).order_by(first.nulls_last() if order.nullable else first, second)
    return ordered.limit(limit + 1)


def page_in(
    rows: Sequence[Row[T, Any]], order: Order, limit: int, id: Callable[[T], str] = attrgetter("id")
) -> Page[T]:
    """The first ``limit`` of the rows that :func:`seek_in` found, and the cursor behind them if there are more; ``id``
    is an item's."""
    kept = rows[:limit]
    items = [row[0] for row in kept]
    if len(rows) <= limit:
        return Page(items, None)
    return Page(items, encoded((order.name, kept[-1][1], id(items[-1]))))


def _position(order: Order, cursor: str) -> tuple[Any, str]:
    """The value and the id that the page begins behind."""
    try:
        name, value, id = decoded(cursor)
        if name != order.name:
            raise ValueError("another order")
        missing = value is None and order.nullable
        return None if missing else part(value, order.kind), str(part(id, str))
    except (ValueError, TypeError, RecursionError) as error:
        raise unissued(cursor, f"is no cursor of a list sorted by {order.name}") from error


def _behind(order: Order, id: Value, value: Any, last: str) -> ColumnElement[bool]:
    next_id = id < last if order.descending else id > last
    if value is None:
        return and_(order.value.is_(None), next_id)
    beyond = order.value < value if order.descending else order.value > value
    # Said twice, so that an index finds where the page begins.
    from_here = order.value <= value if order.descending else order.value >= value
    behind = and_(from_here, or_(beyond, next_id))
    return or_(behind, order.value.is_(None)) if order.nullable else behind
