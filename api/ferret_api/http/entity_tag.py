"""Answers with an entity tag, and what ``If-Match`` and ``If-None-Match`` ask for (RFC 9110, section 13.1)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Response
from pydantic import BaseModel

from ferret_core.protocol.digest import digest_bytes

IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", max_length=500, description="The `ETag` of what is known: 304 where it still holds"),
]
TAGGED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "Of the whole answer", "schema": {"type": "string"}}}},
    304: {"description": "Nothing has changed since the answer with the tag in `If-None-Match`"},
}
"""What :func:`tagged` answers, for ``responses`` of an endpoint."""


def tagged(body: BaseModel, if_none_match: str | None) -> Response:
    """The body with its digest as its tag, or 304 without it for whoever has it."""
    content = body.model_dump_json().encode()
    tag = f'"{digest_bytes(content)}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if if_none_match is not None and matches(if_none_match, tag):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type="application/json")


def matches(wanted: str, tag: str) -> bool:
    """Whether one of the entity tags of the header's value ``wanted`` is ``tag``, with its quotes, or any will do.

    A proxy that compresses answers makes their tags weak; what we give tags to is the same byte by byte, so a weak one
    counts too.
    """
    return any(candidate.strip().removeprefix("W/") in {tag, "*"} for candidate in wanted.split(","))
