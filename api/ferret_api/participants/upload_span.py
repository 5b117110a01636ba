"""Tracing span of a received contribution or part, under its round instead of its request."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from ferret_api.participants.upload import ExpectedUpload
from ferret_db.engine.round_span import trace_of
from ferret_runtime import tracing
from ferret_runtime.tracing import Note


def over(expected: ExpectedUpload, body: bytes | Path) -> AbstractContextManager[Note]:
    """Returns a span that covers checking, storing and accepting the ``body``."""
    size = len(body) if isinstance(body, bytes) else body.stat().st_size
    name = expected.assignment.participant
    return tracing.span("receive", trace_of(expected.target.round), participant=name, bytes=size)
