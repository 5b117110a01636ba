"""The caller's trace, if its program records one with OpenTelemetry; otherwise nothing is sent or imported."""

from __future__ import annotations

import sys


def headers() -> dict[str, str]:
    """Returns W3C's ``traceparent``, and ``tracestate`` if present, of the span of a request."""
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carried: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carried)
    return carried
