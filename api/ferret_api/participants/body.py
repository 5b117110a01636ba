"""Receiving a large body without holding it in memory while it grows: what is cut off for its size costs none."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile

from fastapi import Request
from starlette.exceptions import HTTPException

from ferret_core.durable import room_for
from ferret_core.protocol.errors import FerretError

IN_MEMORY_BYTES = 1 << 20


async def receive(request: Request) -> bytes:
    """The whole body. Beyond a megabyte it grows in a temporary file, and is read once it is known to be complete.

    Raises ``request.too_large`` at the limit that the middleware counts to, and ``storage.full``.
    """
    try:
        with room_for("an upload in TMPDIR"), SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as file:
            async for chunk in request.stream():
                file.write(chunk)
            file.seek(0)
            return file.read()
    except HTTPException as error:
        raise FerretError("request.too_large", error.detail) from error
