"""A collector that hangs or is not there costs spans, and no time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ferret_runtime import log_setup, tracing
from ferret_runtime.tracing import _recorder
from tests.otlp_collector import Collector

NOBODY = "http://127.0.0.1:1"
MANY = 5_000
"""More than may wait."""


@pytest.mark.parametrize("hangs", [True, False], ids=["hangs", "gone"])
@pytest.mark.heavy
def test_work_goes_on_and_the_process_ends(
    hangs: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, own_logging: None
) -> None:
    log_setup.configure("info", "text")
    with ExitStack() as stack:
        collector = stack.enter_context(Collector(hangs=True)) if hangs else None
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url if collector else NOBODY)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        tracing.start("ferret-test")
        begun = time.process_time()
        for _ in range(MANY):
            with tracing.span("fold"):
                pass
        worked = time.process_time() - begun
        if collector:
            assert collector.asked.wait(10)
        begun = time.monotonic()
        tracing.stop()
        assert time.monotonic() - begun < tracing.STOP_SECONDS + 1
        # Here the process goes on: nothing is to be said after the test.
        for thread in threading.enumerate():
            if thread.name == "traces-close":
                thread.join()
    assert worked / MANY < 0.002
    assert len(caplog.records) <= 1


class Refusing(SpanExporter):
    """Takes nothing, in one of two ways."""

    def __init__(self) -> None:
        self.raises = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.raises:
            raise ConnectionError("http://user:password@collector is away")
        return SpanExportResult.FAILURE


def test_the_log_tells_of_lost_spans_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 1000.0
    monkeypatch.setattr(_recorder, "time", SimpleNamespace(monotonic=lambda: now))
    refusing = Refusing()
    exporter = _recorder.QuietExporter(refusing)
    batch: Any = [None] * 10
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            exporter.export(batch)
        now += 61
        refusing.raises = True
        exporter.export(batch)
    first, second = [record.getMessage() for record in caplog.records]
    assert first.startswith("10 spans were lost")
    assert second.startswith("30 spans were lost: ConnectionError")
    assert "password" not in second
