"""Responses with a stored file: conditional, whole or a single range (RFC 9110, sections 13 and 14).

The bytes come from the storage's stream, which works for any backend. The digest is a strong validator.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple
from urllib.parse import quote

from blake3 import blake3
from fastapi import HTTPException, Request, Response
from starlette.datastructures import Headers
from starlette.responses import StreamingResponse

from ferret_api.context import Context
from ferret_api.http.entity_tag import matches
from ferret_api.schemas import OCTETS
from ferret_core.protocol.errors import FerretError
from ferret_core.storage import Storage
from ferret_db.engine.file_integrity import DAMAGE, call_for_repair

CHUNK_BYTES = 1 << 18
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.IGNORECASE)


class Blob(NamedTuple):
    """A stored file of an experiment: its storage location, BLAKE3 digest, size in bytes, and download name."""

    experiment_id: str
    location: str
    digest: str
    size: int
    name: str


class Span(NamedTuple):
    """A byte range from ``start`` to ``end``, exclusive."""

    start: int
    end: int


def respond(context: Context, blob: Blob, request: Request) -> Response:
    """Returns a response with status 200, 206 or 304.

    Raises ``storage.missing`` or ``storage.corrupt``, and 416 for a range outside the file. The digest of a whole file
    is checked while it is sent. On a mismatch, the response is ``storage.corrupt`` if the file has at most
    :data:`CHUNK_BYTES`; a larger response is cut off. ``HEAD`` gets the headers of the whole file, since ranges apply
    only to ``GET`` (RFC 9110, section 14.2).
    """
    asked, etag = request.headers, f'"{blob.digest}"'
    if matches(asked.get("if-none-match", ""), etag):
        return Response(status_code=304, headers={"ETag": etag})
    size = _size(context, blob)
    span = None if request.method == "HEAD" else _asked_span(asked, etag, size)
    start, end = span or Span(0, size)
    headers = {
        "Accept-Ranges": "bytes",
        "Content-Length": str(end - start),
        "Content-Disposition": f"attachment; filename*=utf-8''{quote(blob.name, safe='')}",
        "ETag": etag,
    }
    if span:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    if request.method == "HEAD":
        return Response(headers=headers, media_type=OCTETS)
    chunks = _chunks(context.storage, blob.location, start, end)
    body = chunks if span else _verified(context, blob, chunks)
    first = next(body, b"")  # a small file is checked before the response begins
    return StreamingResponse(chain([first], body), status_code=206 if span else 200, headers=headers, media_type=OCTETS)


def _size(context: Context, blob: Blob) -> int:
    with repairing(context, blob.experiment_id):
        size = context.storage.size(blob.location)
        if size != blob.size:
            raise FerretError("storage.corrupt", f"{blob.location} has {size} bytes instead of {blob.size}")
    return size


def _asked_span(asked: Headers, etag: str, size: int) -> Span | None:
    """Returns the requested range; None for the whole file, also if the client's partial file is of another version."""
    wanted = asked.get("range") if asked.get("if-range", etag) == etag else None
    return _parse(wanted, size) if wanted else None


def _parse(value: str, size: int) -> Span | None:
    """Parses a single range. Returns None for several ranges or an invalid one, which get the whole file."""
    match = _RANGE.fullmatch(value.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    start = int(first) if first else max(size - int(last), 0)
    end = min(int(last) + 1, size) if first and last else size
    if first and last and int(last) < int(first):
        return None
    if start >= size:
        raise HTTPException(
            416, f"Range = {value!r}: the file has {size} bytes", headers={"Content-Range": f"bytes */{size}"}
        )
    return Span(start, end)


def _verified(context: Context, blob: Blob, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the chunks; the last one only if the whole file has the blob's digest."""
    hasher, held = blake3(), b""
    for chunk in chunks:
        if held:
            yield held
        hasher.update(chunk)
        held = chunk
    with repairing(context, blob.experiment_id):
        if hasher.hexdigest() != blob.digest:
            raise FerretError("storage.corrupt", f"{blob.location} does not match its digest")
    yield held


def _chunks(storage: Storage, location: str, start: int, end: int) -> Iterator[bytes]:
    with storage.open(location) as file:
        file.seek(start)
        while start < end and (chunk := file.read(min(CHUNK_BYTES, end - start))):
            start += len(chunk)
            yield chunk


@contextmanager
def repairing(context: Context, experiment_id: str) -> Generator[None]:
    """Requests the experiment's repair if the block raises ``storage.corrupt`` or ``storage.missing``; re-raises it."""
    try:
        yield
    except FerretError as error:
        if error.code not in DAMAGE:
            raise
        with context.database.begin() as s:
            call_for_repair(s, experiment_id)
        raise FerretError(error.code, f"{error.detail}; it is being rebuilt: try again in a minute") from error
