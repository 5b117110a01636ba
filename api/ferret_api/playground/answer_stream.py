"""Playground answers as server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from ferret_api.events.access_check import StreamReader
from ferret_api.playground.question_channel import Conversation
from ferret_core.protocol.errors import FerretError


async def follow(begun: Conversation, follower: StreamReader, stopping: Any, request_id: str) -> AsyncGenerator[bytes]:
    """Yields the worker's messages until the last one, until the process stops, or until the reader loses access.

    A problem is sent as the last event, since the response and its status have already begun.
    """
    taken = False
    try:
        async for word in begun.words():
            if follower.refused:
                return
            if stopping.is_set():
                raise FerretError("playground.interrupted", "the service is stopping: try again in a moment")
            if word is not None:
                taken = True
                yield _event(word.kind, word.data)
            else:
                yield KEEPALIVE_COMMENT if taken else _event("waiting", {"seconds": begun.seconds})
        yield _event("end", {})
    except FerretError as error:
        yield _event("problem", {**error.to_json(), "request_id": request_id})


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return format_sse_event(data_str=json.dumps(data, allow_nan=False), event=kind)
