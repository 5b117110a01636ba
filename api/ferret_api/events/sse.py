"""Responses with server-sent events."""

from __future__ import annotations

from fastapi.responses import StreamingResponse

NOT_HELD_BACK = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # the second is for nginx


class EventStream(StreamingResponse):
    """A response of encoded events. FastAPI's own class would encode every event for every reader."""

    media_type = "text/event-stream"
