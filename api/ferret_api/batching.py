"""Batches of concurrent requests. Requests during one batch form the next (one thread, one transaction)."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import OperationalError

from ferret_core.protocol.errors import FerretError

T = TypeVar("T")
R = TypeVar("R")

MOST = 64
"""Maximum batch size. Later requests wait for the whole batch."""
EVERY_SECONDS = 0.025
"""Minimum time between the starts of two batches. The cost of a batch hardly depends on its size."""


class Batcher(Generic[T, R]):
    """Batches of items for ``work``, which returns a result or an error for each item.

    Use it only on the event loop. ``work`` runs in a thread, one batch at a time."""

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._work = work
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._working: asyncio.Task[None] | None = None
        self._begun = -EVERY_SECONDS

    async def do(self, item: T) -> R:
        """Returns the item's result; raises its error."""
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._working is None:
            # A separate context, since the task serves several requests.
            self._working = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())
        return await answer

    async def _run(self) -> None:
        while self._waiting:
            if len(self._waiting) < MOST:
                await asyncio.sleep(self._begun + EVERY_SECONDS - time.monotonic())
            self._begun = time.monotonic()
            batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            results = await self._results([item for item, _ in batch])
            for (_, answer), result in zip(batch, results, strict=True):
                if answer.done():  # the caller has disconnected
                    continue
                if isinstance(result, Exception):
                    answer.set_exception(result)
                else:
                    answer.set_result(result)
        self._working = None

    async def _results(self, items: Sequence[T]) -> Sequence[R | Exception]:
        try:
            return await run_in_threadpool(self._work, items)
        except OperationalError as error:  # the database failed, independent of the items
            return [error] * len(items)
        except Exception as error:
            if len(items) == 1:
                return [error]
        # One item caused an unexpected error: run each alone, so that the others succeed.
        return [result for item in items for result in await self._results([item])]


def attempt(act: Callable[[T], R], item: T) -> R | FerretError:
    """Returns the result of ``act(item)``, or the ``FerretError`` that it raises."""
    try:
        return act(item)
    except FerretError as error:
        return error
