"""Batches of requests that many participants send simultaneously."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool

from ferret_api.access import Identity
from ferret_api.batching import Batcher
from ferret_api.context import Context
from ferret_api.participants import next_assignment, upload
from ferret_core.protocol.errors import FerretError


class RequestBatchers:
    """Batches of token lookups, polls, uploads with complete headers, and received uploads. For the event loop."""

    def __init__(self, context: Context) -> None:
        self.strangers: Batcher[str, Identity] = Batcher(partial(next_assignment.recognise_all, context))
        self.questions: Batcher[str, next_assignment.Found] = Batcher(partial(next_assignment.ask_all, context))
        self.expected: Batcher[tuple[str, str], upload.ExpectedUpload] = Batcher(
            partial(upload.lookup_uploads, context)
        )
        self._context = context
        self._received: Batcher[upload.ReceivedUpload, upload.UploadResult] = Batcher(
            partial(upload.accept_uploads, context)
        )

    async def accept(self, received: upload.ReceivedUpload) -> upload.UploadResult:
        """Accepts a contribution. A large one is not batched, so that others do not wait for the disk."""
        if isinstance(received.body, bytes):
            return await self._received.do(received)
        (result,) = await run_in_threadpool(upload.accept_uploads, self._context, [received])
        if isinstance(result, FerretError):
            raise result
        return result


async def _batches(request: Request) -> RequestBatchers:
    return request.app.state.batches


BatchesDep = Annotated[RequestBatchers, Depends(_batches)]
