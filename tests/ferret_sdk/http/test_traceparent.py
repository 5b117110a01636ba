"""The SDK says in which trace it is where its program records one, and nothing otherwise."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

from ferret_sdk.http.transport import Transport


def test_a_request_names_the_span_that_it_is_made_in_and_otherwise_none(server: Any) -> None:
    server.script(lambda exchange: exchange.json({}), lambda exchange: exchange.json({}))
    transport = Transport(server.url)
    transport.get("/info")
    with TracerProvider().get_tracer("notebook").start_as_current_span("analysis") as span:
        transport.get("/info")
        shown = transport.headers_of("GET", "/info", 0, {})
    alone, inside = (request.headers for request in server.requests)
    ids = span.get_span_context()
    assert "traceparent" not in alone
    assert inside["traceparent"] == shown["traceparent"]
    assert inside["traceparent"].startswith(f"00-{ids.trace_id:032x}-{ids.span_id:016x}-")


@pytest.mark.heavy
def test_a_program_without_traces_imports_nothing_for_it() -> None:
    program = "import sys, ferret_sdk.http.transport as t; t.trace_headers(); print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
