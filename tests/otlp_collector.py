"""A collector of traces: it takes OTLP over HTTP as any other, and keeps all spans for the test to look at."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Seen(NamedTuple):
    """A span as it arrived; times in nanoseconds since 1970, ids in hexadecimal."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    links: list[str]
    """Traces that it has a link to."""
    attributes: dict[str, Any]
    begin: int
    end: int
    failed: bool


class Collector:
    """Listens at ``url`` from the start; one that ``hangs`` takes requests and never answers."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()
        self._end = threading.Event()
        self._hangs = hangs
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector._take(self)

            def log_message(self, *_: Any) -> None:  # pyrefly: ignore[bad-override]
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        """What has a process send here, soon."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url, "OTEL_BSP_SCHEDULE_DELAY": "50"}

    @property
    def spans(self) -> list[Seen]:
        """All that have arrived, by the time of their beginning."""
        found = [span for body in list(self.bodies) for span in _spans(body)]
        return sorted(found, key=lambda span: span.begin)

    def named(self, name: str) -> list[Seen]:
        return [span for span in self.spans if span.name == name]

    def stop(self) -> None:
        self._end.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _take(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["Content-Length"]))
        assert request.path == "/v1/traces"
        self.asked.set()
        if self._hangs:
            self._end.wait()
            return
        self.headers.append(dict(request.headers))
        self.bodies.append(body)
        request.send_response(200)
        request.send_header("Content-Length", "0")
        request.end_headers()


def _spans(body: bytes) -> list[Seen]:
    message = ExportTraceServiceRequest.FromString(body)
    return [
        Seen(
            _values(resource.resource.attributes)["service.name"],
            span.name,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            [link.trace_id.hex() for link in span.links],
            _values(span.attributes),
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            span.status.code == span.status.STATUS_CODE_ERROR,
        )
        for resource in message.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
