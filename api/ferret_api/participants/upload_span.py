"""The span of a contribution that arrives, or a part of it: under its round, apart from the request that brings it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ferret_api.participants.upload import ExpectedUpload
from ferret_db.engine.round_span import trace_of
from ferret_runtime import tracing
from ferret_runtime.tracing import Note


def over(expected: ExpectedUpload, body: bytes | Path) -> AbstractContextManager[Note]:
    """A span over the check, the storing and the acceptance of the ``body``."""
    size = len(body) if isinstance(body, bytes) else body.stat().st_size
    name = expected.assignment.participant
    return tracing.span("receive", trace_of(expected.target.round), participant=name, bytes=size)
