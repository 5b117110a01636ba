"""Requests that come while earlier ones are being worked on are worked on together: one thread, one transaction."""

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
"""What is worked on at a time: whoever comes next waits that long."""
EVERY_SECONDS = 0.025
"""Between the beginnings of two batches: what a batch costs hardly depends on how many are in it."""


class Gathered(Generic[T, R]):
    """``work`` answers several items, each with its result or with the error that is its own. For the event loop alone;
    ``work`` runs in a thread, once at a time."""

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._work = work
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._working: asyncio.Task[None] | None = None
        self._begun = -EVERY_SECONDS

    async def do(self, item: T) -> R:
        """The item's result; raises its error."""
        answer = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if self._working is None:
            # In a context of its own: it belongs to no request.
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
                if answer.done():  # who asked has gone
                    continue
                if isinstance(result, Exception):
                    answer.set_exception(result)
                else:
                    answer.set_result(result)
        self._working = None

    async def _results(self, items: Sequence[T]) -> Sequence[R | Exception]:
        try:
            return await run_in_threadpool(self._work, items)
        except OperationalError as error:  # the database is at fault, whatever it was asked
            return [error] * len(items)
        except Exception as error:
            if len(items) == 1:
                return [error]
        # One of them brought what nobody foresaw, and the others are not to suffer from it.
        return [result for item in items for result in await self._results([item])]


def attempt(act: Callable[[T], R], item: T) -> R | FerretError:
    """What comes of the item, or the error that is its own."""
    try:
        return act(item)
    except FerretError as error:
        return error
