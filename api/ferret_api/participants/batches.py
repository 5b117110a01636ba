"""Batches of requests that many participants send simultaneously."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool

from ferret_api.access import Identity
from ferret_api.batching import Gathered
from ferret_api.context import Context
from ferret_api.participants import service, upload
from ferret_core.protocol.errors import FerretError


class Batches:
    """Batches of token lookups, polls for work, uploads with complete headers, and received uploads.

    Use it only on the event loop."""

    def __init__(self, context: Context) -> None:
        self.strangers: Gathered[str, Identity] = Gathered(partial(service.recognise_all, context))
        self.questions: Gathered[str, service.Found] = Gathered(partial(service.ask_all, context))
        self.arrivals: Gathered[upload.Arrival, upload.Expected] = Gathered(partial(upload.expect_all, context))
        self._context = context
        self._deliveries: Gathered[upload.Delivery, upload.Taken] = Gathered(partial(upload.take_all, context))

    async def take(self, delivery: upload.Delivery) -> upload.Taken:
        """Accepts a contribution. A large one is not batched, so that others do not wait for the disk."""
        if isinstance(delivery.body, bytes):
            return await self._deliveries.do(delivery)
        (taken,) = await run_in_threadpool(upload.take_all, self._context, [delivery])
        if isinstance(taken, FerretError):
            raise taken
        return taken


async def _batches(request: Request) -> Batches:
    return request.app.state.batches


BatchesDep = Annotated[Batches, Depends(_batches)]
