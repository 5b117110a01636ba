"""Traces of the process that runs the tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ferret_runtime import tracing
from tests.otlp_collector import Collector, Seen


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Where traces go once they are started."""
    with Collector() as collector:
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        yield collector
        tracing.stop()


@pytest.fixture
def sent(collector: Collector) -> Callable[[Callable[[], Any]], list[Seen]]:
    """``sent(act)``: the spans that ``act`` leaves, all of which have arrived."""

    def run(act: Callable[[], Any]) -> list[Seen]:
        tracing.start("ferret-test")
        act()
        tracing.stop()
        return collector.spans

    return run
