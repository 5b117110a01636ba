"""An answer of server-sent events."""

from __future__ import annotations

from fastapi.responses import StreamingResponse

NOT_HELD_BACK = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # the second is for nginx


class EventStream(StreamingResponse):
    """Not FastAPI's, which encodes every event for every reader."""

    media_type = "text/event-stream"
