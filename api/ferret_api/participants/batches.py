"""What many participants do at one moment, done together."""

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
    """Participants to recognise and questions that the database answers, by token; uploads whose headers have come, and
    those that have been received. For the event loop alone."""

    def __init__(self, context: Context) -> None:
        self.strangers: Gathered[str, Identity] = Gathered(partial(service.recognise_all, context))
        self.questions: Gathered[str, service.Found] = Gathered(partial(service.ask_all, context))
        self.arrivals: Gathered[upload.Arrival, upload.Expected] = Gathered(partial(upload.expect_all, context))
        self._context = context
        self._deliveries: Gathered[upload.Delivery, upload.Taken] = Gathered(partial(upload.take_all, context))

    async def take(self, delivery: upload.Delivery) -> upload.Taken:
        """Takes a contribution; a large one by itself, so that nobody waits for its disk."""
        if isinstance(delivery.body, bytes):
            return await self._deliveries.do(delivery)
        (taken,) = await run_in_threadpool(upload.take_all, self._context, [delivery])
        if isinstance(taken, FerretError):
            raise taken
        return taken


async def _batches(request: Request) -> Batches:
    return request.app.state.batches


BatchesDep = Annotated[Batches, Depends(_batches)]
