"""Reception of request bodies. Bodies larger than 1 MiB go to a scratch file on the storage's disk."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from anyio import open_file
from fastapi import Request
from fastapi.concurrency import contextmanager_in_threadpool
from starlette.exceptions import HTTPException

from ferret_core.protocol.errors import FerretError
from ferret_core.storage import Storage
from ferret_core.system.atomic_files import disk_full_as_error

IN_MEMORY_BYTES = 1 << 20


@asynccontextmanager
async def received(request: Request, storage: Storage, most: int, what: str) -> AsyncGenerator[bytes | Path]:
    """Yields the whole body: its bytes, or beyond 1 MiB a scratch file that is deleted after the block.

    Raises ``storage.full``, and ``request.too_large`` beyond ``most`` bytes. If the request announces more, it raises
    before it reads anything. ``what`` names the body in the error.
    """
    text = request.headers.get("content-length", "")
    declared = int(text) if text.isdecimal() else 0
    if declared > most:
        raise _too_large(what, most, declared)
    async with AsyncExitStack() as stack:
        chunks = _chunks(request, most, what)
        first = await anext(chunks, b"")
        if len(first) <= IN_MEMORY_BYTES:
            yield first
            return
        folder = await stack.enter_async_context(contextmanager_in_threadpool(storage.scratch(declared)))
        path = folder / "body"
        with disk_full_as_error(path):
            async with await open_file(path, "wb") as file:
                await file.write(first)
                async for chunk in chunks:
                    await file.write(chunk)
        yield path


async def _chunks(request: Request, most: int, what: str) -> AsyncIterator[bytes]:
    """Yields the body in chunks larger than :data:`IN_MEMORY_BYTES`, and a shorter last one."""
    held, count = bytearray(), 0
    try:
        async for chunk in request.stream():
            count += len(chunk)
            if count > most:
                raise _too_large(what, most, count)
            held += chunk
            if len(held) > IN_MEMORY_BYTES:
                yield bytes(held)
                held.clear()
    except HTTPException as error:
        raise FerretError("request.too_large", error.detail) from error
    yield bytes(held)


def _too_large(what: str, most: int, found: int) -> FerretError:
    detail = f"{what} has at most {most} bytes, and the body has {found} or more: send what the algorithm sends"
    return FerretError("request.too_large", detail)
