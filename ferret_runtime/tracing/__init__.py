"""Traces with OpenTelemetry. Its packages are imported only if :func:`start` finds that traces are enabled.

An attempt at a round is one trace. Its ids are derived (:class:`RoundTrace`), so every process joins it without
communication, also after a restart. A request is a separate trace, which continues in the messages that it sends::

    with tracing.span("fold", contributions=5) as note:
        ...
        note(bytes=len(update))

Attributes hold only ids, names that everybody in the project sees, counts and codes. OpenTelemetry's environment
variables decide if and how traces leave the process: the endpoint and the protocol are checked here, its packages read
the others (sampling, batches, time limits, headers, certificates).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_runtime import log_setup

if TYPE_CHECKING:
    from ferret_runtime.tracing._recorder import Recorder

Kind = Literal["internal", "server", "consumer"]
Value = str | int | float | None
Note = Callable[..., None]
"""Adds attributes to a span: ``note(bytes=12)`` is ``ferret.bytes``. A name with a dot is not prefixed."""

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"
INSTALL = "pip install 'ferret-service[tracing]'"
STOP_SECONDS = 2.0
"""Maximum seconds to send the last spans of a process."""

_running: Recorder | None = None


class RoundTrace(NamedTuple):
    """An attempt at a round as a trace. Its ids are derived from the three fields."""

    experiment: str
    round: int
    attempt: int

    @property
    def trace_id(self) -> str:
        """The trace id, 32 hexadecimal digits: the first half of the BLAKE3 of ``experiment/round/attempt``."""
        return self._digest[:32]

    @property
    def root_id(self) -> str:
        """The id of the span ``round``, the parent of all spans of the round: 16 hexadecimal digits."""
        return self._digest[32:48]

    @property
    def _digest(self) -> str:
        return digest_bytes("/".join(map(str, self)).encode())


def start(service: str) -> None:
    """Starts sending this process's spans, under the name ``service``, if the environment sets an endpoint.

    Raises ``dependency.missing`` without the packages, and ``settings.invalid``.
    """
    global _running
    variable = _endpoint_variable()
    if variable is None:
        return
    try:
        from ferret_runtime.tracing._recorder import Recorder
    except ModuleNotFoundError as error:
        detail = f"{variable} is set, but OpenTelemetry is not installed: {INSTALL}, or unset the variable"
        raise FerretError("dependency.missing", detail) from error
    _running = Recorder.opened(service)


def stop() -> None:
    """Sends the last spans within two seconds."""
    global _running
    recorder, _running = _running, None
    if recorder is not None:
        recorder.close(STOP_SECONDS)


def on() -> bool:
    """Returns True if spans are recorded."""
    return _running is not None


@contextmanager
def span(name: str, of: RoundTrace | None = None, kind: Kind = "internal", /, **attributes: Value) -> Generator[Note]:
    """Opens a span over the block, with its ids in the block's logs.

    Its parent is the round ``of``, or the current span. An error that ends the block is recorded by its code alone.
    """
    recorder = _running
    if recorder is None:
        yield _nothing
        return
    about = {**of._asdict(), **attributes} if of else attributes
    with recorder.span(name, of, kind, about) as (note, ids), log_setup.bound(**ids):
        yield note


@contextmanager
def received(headers: Mapping[str, str]) -> Generator[None]:
    """Makes the span in ``headers`` (W3C's ``traceparent``), if any, the parent of the block's spans."""
    recorder = _running
    if recorder is None:
        yield
        return
    with recorder.received(headers):
        yield


def headers() -> dict[str, str]:
    """Returns the current span as headers for a message."""
    recorder = _running
    return {} if recorder is None else recorder.headers()


def round_ended(of: RoundTrace, begin: datetime, end: datetime, error: str | None, /, **attributes: Value) -> None:
    """Records the round's span. ``error`` is the code of the error that ended it, if it was not committed."""
    recorder = _running
    if recorder is not None:
        recorder.root(of, begin, end, error, {**of._asdict(), **attributes})


def _nothing(**attributes: Value) -> None:
    """Does nothing: spans are not recorded."""


def _endpoint_variable() -> str | None:
    """Returns the variable with the endpoint of traces. None if it is unset, or traces are disabled.

    Raises ``settings.invalid`` for an invalid http address, and for another protocol than OTLP over HTTP.
    """
    if _value("OTEL_SDK_DISABLED").lower() == "true" or _value("OTEL_TRACES_EXPORTER").lower() == "none":
        return None
    variable = next(filter(_value, ENDPOINTS), None)
    if variable is not None:
        _require_address(variable)
        _require_protocol()
    return variable


def _require_address(variable: str) -> None:
    parts = urlsplit(_value(variable))
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        message = "must be the collector's address, such as http://127.0.0.1:4318"
        raise FerretError.of_field("settings.invalid", variable, None, message)


def _require_protocol() -> None:
    variable = next(filter(_value, PROTOCOLS), None)
    if variable is not None and _value(variable) != PROTOCOL:
        message = f"is not supported: use {PROTOCOL}, which collectors take at port 4318"
        raise FerretError.of_field("settings.invalid", variable, _value(variable), message)


def _value(variable: str) -> str:
    return os.environ.get(variable, "").strip()
