"""A stranger that asks as fast as it is answered: ``python -m ferret_bench._requests.flood PORT PATH CONNECTIONS``.

A process of its own, so that it takes no time from who measures. Runs until stdin ends; prints the answers by status
and the seconds as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from time import perf_counter


async def _ask(port: int, path: str, answers: Counter[str]) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while True:
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
                )
                await reader.readexactly(length)
                answers[head.split(b" ", 2)[1].decode()] += 1
        except (OSError, EOFError):
            answers["broken"] += 1
            await asyncio.sleep(0.1)


async def _flood(port: int, path: str, connections: int) -> None:
    answers, begin = Counter[str](), perf_counter()
    asking = [asyncio.create_task(_ask(port, path, answers)) for _ in range(connections)]
    await asyncio.to_thread(sys.stdin.read)
    seconds = perf_counter() - begin
    for task in asking:
        task.cancel()
    print(json.dumps({"answers": answers, "seconds": seconds}))


if __name__ == "__main__":
    asyncio.run(_flood(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
