"""Receiving a large body without holding it in memory while it grows: what is cut off for its size costs none."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile

from fastapi import Request
from starlette.exceptions import HTTPException

from ferret_core.durable import room_for
from ferret_core.protocol.errors import FerretError

IN_MEMORY_BYTES = 1 << 20


async def receive(request: Request, most: int) -> bytes:
    """The whole body. Beyond a megabyte it grows in a temporary file, and is read once it is known to be complete.

    Raises ``request.too_large`` beyond ``most`` bytes, before any is read where the request announces more, and
    ``storage.full``.
    """
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise _too_large(most)
    try:
        with room_for("an upload in TMPDIR"), SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as file:
            async for chunk in request.stream():
                if file.tell() + len(chunk) > most:
                    raise _too_large(most)
                file.write(chunk)
            file.seek(0)
            return file.read()
    except HTTPException as error:
        raise FerretError("request.too_large", error.detail) from error


def _too_large(most: int) -> FerretError:
    return FerretError("request.too_large", f"a contribution to this assignment has at most {most} bytes")
