"""OpenTelemetry spans: created here, sent in batches by a separate thread."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ferret_core import __version__
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_runtime.tracing import Kind, Note, RoundTrace, Value


import logging
import time
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

logger = logging.getLogger(__name__)

LINE_SECONDS = 60.0


class QuietExporter(SpanExporter):
    """Passes spans to ``exporter``. Refused spans are lost, and nobody waits for them."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._lost = 0
        self._said: float | None = None

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:
            self._lose(len(spans), type(error).__name__)
            return SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self._lose(len(spans), "the collector does not take them")
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def _lose(self, count: int, reason: str) -> None:
        self._lost += count
        now = time.monotonic()
        if self._said is None or now - self._said >= LINE_SECONDS:
            logger.warning("%d spans were lost: %s; look at the OTEL_EXPORTER_OTLP_… variables", self._lost, reason)
            self._said, self._lost = now, 0


ROUND = "round"
ERROR = "error.type"
"""The attribute that names the error and marks the span as failed."""
W3C = TraceContextTextMapPropagator()
"""Without baggage: a client's baggage is not for us."""


class _Ids(IdGenerator):
    """Not from Python's ``random``: processes with the same seed would give different spans the same id."""

    def __init__(self) -> None:
        self.fixed: ContextVar[RoundTrace | None] = ContextVar("fixed", default=None)

    def generate_trace_id(self) -> int:
        fixed = self.fixed.get()
        return int(fixed.trace_id, 16) if fixed else secrets.randbits(128) or 1

    def generate_span_id(self) -> int:
        fixed = self.fixed.get()
        return int(fixed.root_id, 16) if fixed else secrets.randbits(64) or 1


class Recorder:
    """One process's spans."""

    def __init__(self, service: str, exporter: OTLPSpanExporter) -> None:
        self._ids = _Ids()
        self._provider = TracerProvider(id_generator=self._ids, resource=_resource(service), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(QuietExporter(exporter)))
        self._tracer = self._provider.get_tracer("ferret", __version__)

    @classmethod
    def opened(cls, service: str) -> Recorder:
        """Creates a recorder for the environment's endpoint; raises ``settings.invalid`` for an invalid variable."""
        try:
            return cls(service, OTLPSpanExporter())
        except (OSError, ValueError) as error:
            detail = f"OpenTelemetry cannot use its variables (OTEL_…): {error}"
            raise FerretError("settings.invalid", detail) from error

    @contextmanager
    def span(
        self, name: str, of: RoundTrace | None, kind: Kind, attributes: Mapping[str, Value]
    ) -> Generator[tuple[Note, dict[str, str]]]:
        """Opens a span. Yields the function that adds attributes, and the span's ids for logs."""
        with self._tracer.start_as_current_span(
            name,
            self._inside(of) if of else None,
            kind=SpanKind[kind.upper()],
            attributes=_attributes(attributes),
            links=_links() if of else None,
            record_exception=False,  # its message may quote any text
            set_status_on_exception=False,
        ) as made:
            try:
                yield partial(_note, made), _ids_of(made.get_span_context())
            except Exception as error:
                _note(made, **{ERROR: error.code if isinstance(error, FerretError) else type(error).__name__})
                raise

    def root(
        self, of: RoundTrace, begin: datetime, end: datetime, error: str | None, attributes: Mapping[str, Value]
    ) -> None:
        """Records the parent span of all spans of a round, after its end."""
        token = self._ids.fixed.set(of)
        try:
            made = self._tracer.start_span(
                ROUND, Context(), attributes=_attributes(attributes), start_time=_nanoseconds(begin)
            )
        finally:
            self._ids.fixed.reset(token)
        if error:
            _note(made, **{ERROR: error})
        made.end(_nanoseconds(end))

    @contextmanager
    def received(self, headers: Mapping[str, str]) -> Generator[None]:
        token = context.attach(W3C.extract(headers, Context()))
        try:
            yield
        finally:
            context.detach(token)

    def headers(self) -> dict[str, str]:
        carried: dict[str, str] = {}
        W3C.inject(carried)
        return carried

    def close(self, seconds: float) -> None:
        """Sends the remaining spans within ``seconds``, even if the collector hangs."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces-close", daemon=True)
        closing.start()
        closing.join(seconds)

    def _inside(self, of: RoundTrace) -> Context:
        """Returns the context of the round's span. Its sampling is decided by its id alone."""
        trace_id = int(of.trace_id, 16)
        decision = self._provider.sampler.should_sample(Context(), trace_id, ROUND).decision
        flags = TraceFlags(TraceFlags.SAMPLED if decision.is_sampled() else TraceFlags.DEFAULT)
        root = SpanContext(trace_id, int(of.root_id, 16), is_remote=True, trace_flags=flags)
        return trace.set_span_in_context(NonRecordingSpan(root), Context())


def _resource(service: str) -> Resource:
    """Returns the resource: the sender, unless the environment overrides it (``OTEL_SERVICE_NAME``)."""
    own = Resource.create({"service.name": service, "service.namespace": "ferret", "service.version": __version__})
    return own.merge(OTELResourceDetector().detect())


def _links() -> list[Link]:
    current = trace.get_current_span().get_span_context()
    return [Link(current)] if current.is_valid else []


def _note(made: Span, **attributes: Value) -> None:
    made.set_attributes(_attributes(attributes))
    if ERROR in attributes:
        made.set_status(Status(StatusCode.ERROR))


def _attributes(given: Mapping[str, Value]) -> dict[str, str | int | float]:
    return {name if "." in name else f"ferret.{name}": value for name, value in given.items() if value is not None}


def _ids_of(made: SpanContext) -> dict[str, str]:
    return {"trace_id": trace.format_trace_id(made.trace_id), "span_id": trace.format_span_id(made.span_id)}


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1000
