"""Iteration over a list that the server returns page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ferret_core.protocol.errors import FerretError
from ferret_sdk.http.transport import Transport
from ferret_sdk.service.schemas import Item, Page


def items(transport: Transport, path: str, kind: type[Item], **query: Any) -> Iterator[Item]:
    """Yields every item of the list, in the server's order. A page is fetched when the previous one is used up.

    Raises ``server.unexpected`` for an item that is not of its ``kind``, and for a list that does not advance.
    """
    cursor: str | None = None
    while True:
        page = Page.read(transport.get(path, cursor=cursor, **query))
        yield from map(kind.read, page.items)
        if page.next_cursor is None:
            return
        if not page.items or page.next_cursor == cursor:
            message = "leads to a page that was seen or is empty"
            raise FerretError.of_field("server.unexpected", "next_cursor", page.next_cursor[:200], message)
        cursor = page.next_cursor
