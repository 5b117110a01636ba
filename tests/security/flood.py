"""Many requests at once. Needs the standard library alone, so that a process of its own soon begins."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence


def post_all(port: int, path: str, bodies: Sequence[str], *headers: str) -> list[int]:
    """The statuses of requests that are all made at once, each on a connection of its own."""

    async def every() -> list[int]:
        return await asyncio.gather(*(_post(port, path, body, *headers) for body in bodies))

    return asyncio.run(every())


async def _post(port: int, path: str, body: str, *headers: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", "Content-Type: application/json"]
        head = "\r\n".join([*lines, *headers, f"Content-Length: {len(body)}", "", ""])
        writer.write((head + body).encode())
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()
