"""The query parameters of lists: opaque cursors, and positions in append-only records."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from ferret_api.schemas import MAX_INTEGER

Limit = Annotated[int, Query(ge=1, le=200, description="Items per page")]
Cursor = Annotated[
    str | None,
    Query(max_length=1000, description="`next_cursor` of the previous page; leave it out for the first page"),
]
After = Annotated[int, Query(ge=0, le=MAX_INTEGER, description="Only items after this number; 0 for all")]

PAGE = 50
