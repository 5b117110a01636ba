"""Receiving a large body without holding it in memory while it grows: what is cut off for its size costs none."""

from __future__ import annotations

import errno
from tempfile import SpooledTemporaryFile

from fastapi import Request
from starlette.exceptions import HTTPException

from ferret_core.protocol.errors import FerretError

IN_MEMORY_BYTES = 1 << 20
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


async def receive(request: Request) -> bytes:
    """The whole body. Beyond a megabyte it grows in a temporary file, and is read once it is known to be complete.

    Raises ``request.too_large`` at the limit that the middleware counts to, and ``storage.full``.
    """
    try:
        with SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as file:
            async for chunk in request.stream():
                file.write(chunk)
            file.seek(0)
            return file.read()
    except HTTPException as error:
        raise FerretError("request.too_large", error.detail) from error
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise FerretError("storage.full", "no room left for an upload under TMPDIR: make room there") from error
