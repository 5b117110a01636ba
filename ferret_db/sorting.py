"""Lists in an order that the caller chooses, page by page.

A page begins after a value and an id, not after a number of rows. So an insertion, deletion or change elsewhere does
not repeat or skip a row.
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
"""Name of the sort column in a list's rows."""


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
        query = query.where(_behind(order, id, *_position(order, cursor)))
    first, second = (value.desc(), id.desc()) if order.descending else (value.asc(), id.asc())
    ordered = query.add_columns(value).order_by(first.nulls_last() if order.nullable else first, second)
    return ordered.limit(limit + 1)


def page_in(
    rows: Sequence[Row[T, Any]], order: Order, limit: int, id: Callable[[T], str] = attrgetter("id")
) -> Page[T]:
    """Returns the first ``limit`` rows found by :func:`seek_in`, and the cursor after them if there are more.

    ``id`` returns an item's id.
    """
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


def _behind(order: Order, id: Value, value: Any, last: str) -> ColumnElement[bool]:
    next_id = id < last if order.descending else id > last
    if value is None:
        return and_(order.value.is_(None), next_id)
    beyond = order.value < value if order.descending else order.value > value
    # Redundant, so that an index finds where the page begins.
    from_here = order.value <= value if order.descending else order.value >= value
    behind = and_(from_here, or_(beyond, next_id))
    return or_(behind, order.value.is_(None)) if order.nullable else behind
