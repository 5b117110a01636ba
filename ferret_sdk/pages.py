"""Walks a list that the server gives page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ferret_sdk.transport import Transport


def items(transport: Transport, path: str, **query: Any) -> Iterator[dict[str, Any]]:
    """Every item of the list, in the server's order; a page is fetched when the one before is used up."""
    cursor: str | None = None
    while True:
        page = transport.get(path, cursor=cursor, **query)
        yield from page["items"]
        cursor = page.get("next_cursor")
        if cursor is None:
            return
