"""The caller's trace, where its program records one by OpenTelemetry: else nothing is sent, and nothing imported."""

from __future__ import annotations

import sys


def headers() -> dict[str, str]:
    """W3C's ``traceparent``, and ``tracestate`` if there is one, of the span in which a request is made."""
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carried: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carried)
    return carried
