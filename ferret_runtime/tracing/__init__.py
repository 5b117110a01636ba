"""Traces by OpenTelemetry, whose packages are imported only where :func:`start` finds that traces are wanted.

An attempt at a round is one trace. Its ids follow from what it is (:class:`RoundTrace`), so every process joins it
without a word from the others, also after a restart. A request has a trace of its own, which goes on in the messages
that it sends::

    with tracing.span("fold", contributions=5) as note:
        ...
        note(bytes=len(update))

Names and values of attributes are the service's own: ids, names that everybody in the project sees, counts, codes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_runtime import logging
from ferret_runtime.tracing import _environment

if TYPE_CHECKING:
    from ferret_runtime.tracing._recorder import Recorder

Kind = Literal["internal", "server", "consumer"]
Value = str | int | float | None
Note = Callable[..., None]
"""Adds attributes to a span: ``note(bytes=12)`` is ``ferret.bytes``; a name with a dot stays as it is."""

INSTALL = "pip install 'ferret-service[tracing]'"
STOP_SECONDS = 2.0
"""For the last spans at the end of a process."""

_running: Recorder | None = None


class RoundTrace(NamedTuple):
    """An attempt at a round as a trace: every process that knows the three knows its ids."""

    experiment: str
    round: int
    attempt: int

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits: the first half of the BLAKE3 of ``experiment/round/attempt``."""
        return self._digest[:32]

    @property
    def root_id(self) -> str:
        """16 hexadecimal digits: the span ``round``, the parent of all that belongs to the round."""
        return self._digest[32:48]

    @property
    def _digest(self) -> str:
        return digest_bytes("/".join(map(str, self)).encode())


def start(service: str) -> None:
    """Begins to send this process's spans, under the name ``service``, if the environment says where to.

    Raises ``setup.missing`` without the packages, and ``settings.invalid``.
    """
    global _running
    variable = _environment.endpoint_variable()
    if variable is None:
        return
    try:
        from ferret_runtime.tracing._recorder import Recorder
    except ModuleNotFoundError as error:
        detail = f"{variable} is set, but OpenTelemetry is not installed: {INSTALL}, or unset the variable"
        raise FerretError("setup.missing", detail) from error
    _running = Recorder.opened(service)


def stop() -> None:
    """Sends the last spans, and waits two seconds for that at most."""
    global _running
    recorder, _running = _running, None
    if recorder is not None:
        recorder.close(STOP_SECONDS)


def on() -> bool:
    """Whether spans are recorded."""
    return _running is not None


@contextmanager
def span(name: str, of: RoundTrace | None = None, kind: Kind = "internal", /, **attributes: Value) -> Generator[Note]:
    """A span over the block, and its ids in the block's logs: directly under the round ``of``, or under the current
    span. An error that ends the block is noted by its code alone."""
    recorder = _running
    if recorder is None:
        yield _nothing
        return
    about = {**of._asdict(), **attributes} if of else attributes
    with recorder.span(name, of, kind, about) as (note, ids), logging.bound(**ids):
        yield note


@contextmanager
def received(headers: Mapping[str, str]) -> Generator[None]:
    """What the block does belongs to the span that ``headers`` name, by W3C's ``traceparent``; if none, to none."""
    recorder = _running
    if recorder is None:
        yield
        return
    with recorder.received(headers):
        yield


def headers() -> dict[str, str]:
    """The current span, as headers for a message."""
    recorder = _running
    return {} if recorder is None else recorder.headers()


def round_ended(of: RoundTrace, begin: datetime, end: datetime, error: str | None, /, **attributes: Value) -> None:
    """Records the round's own span; ``error`` is the code of what ended it, if it was not committed."""
    recorder = _running
    if recorder is not None:
        recorder.root(of, begin, end, error, {**of._asdict(), **attributes})


def _nothing(**attributes: Value) -> None:
    """Notes nothing: no span is recorded."""
