"""An exporter of spans that reports failures at most once a minute."""

from __future__ import annotations

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
