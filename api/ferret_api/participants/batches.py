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
        self.expected: Gathered[tuple[str, str], upload.ExpectedUpload] = Gathered(
            partial(upload.lookup_uploads, context)
        )
        self._context = context
        self._received: Gathered[upload.ReceivedUpload, upload.UploadResult] = Gathered(
            partial(upload.accept_uploads, context)
        )

    async def accept(self, received: upload.ReceivedUpload) -> upload.UploadResult:
        """Accepts a contribution; a large one by itself, so that nobody waits for its disk."""
        if isinstance(received.body, bytes):
            return await self._received.do(received)
        (result,) = await run_in_threadpool(upload.accept_uploads, self._context, [received])
        if isinstance(result, FerretError):
            raise result
        return result


async def _batches(request: Request) -> Batches:
    return request.app.state.batches


BatchesDep = Annotated[Batches, Depends(_batches)]
