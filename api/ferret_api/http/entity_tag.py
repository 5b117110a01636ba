"""Responses with an entity tag; ``If-Match`` and ``If-None-Match`` (RFC 9110, section 13.1)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Header, Response
from pydantic import BaseModel

from ferret_core.protocol.digest import digest_bytes

IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match", max_length=500, description="`ETag` of the known response: 304 if it is still current"
    ),
]
TAGGED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"description": "Entity tag of the whole response", "schema": {"type": "string"}}}},
    304: {"description": "Nothing has changed since the response with the tag in `If-None-Match`"},
}
"""Responses of :func:`tagged`, for ``responses`` of an endpoint."""


def tagged(body: BaseModel, if_none_match: str | None) -> Response:
    """Returns the body with its digest as ETag, or 304 if the tag matches ``if_none_match``."""
    content = body.model_dump_json().encode()
    tag = f'"{digest_bytes(content)}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if if_none_match is not None and matches(if_none_match, tag):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type="application/json")


def matches(wanted: str, tag: str) -> bool:
    """Returns True if the header value ``wanted`` contains ``tag``, with its quotes, or is ``*``.

    A weak tag counts as equal: a proxy that compresses responses makes tags weak, but the content is the same.
    """
    return any(candidate.strip().removeprefix("W/") in {tag, "*"} for candidate in wanted.split(","))
