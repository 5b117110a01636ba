"""HTTP/1.1 protocol with timeouts for headers, bodies and readers. Uvicorn has one only for idle connections."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ferret_api.client_network import network
from ferret_api.connections.pool import Connections
from ferret_api.http.security_headers import ALWAYS
from ferret_core.protocol.errors import FerretError

RETRY_SECONDS = 5
HEADERS, BODY, READER = "header_timeout", "body_timeout", "reader_timeout"


class DeadlineProtocol(H11Protocol):
    """One connection. :meth:`Connections.sweep` checks about once a second whether it is overdue.

    Headers must be complete ``header_seconds`` after the connection is made, or after the first byte of a later
    request. Receiving a body, or sending a response, may take ``body_seconds`` plus the time for its bytes at
    ``body_bytes_per_second``. Time in which the server itself does not read is not counted.
    """

    def __init__(self, *args: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*args, **options)
        self._connections = connections
        self._sizing = connections.sizing
        self.address = ""
        self._headers_since: float | None = None
        self._body_seconds = 0.0
        self._body_bytes = 0
        self._looked_at = 0.0
        self._request: object = None
        self._reader_deadline: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self.address = network(peer[0])
        self._headers_since = time.monotonic()
        self._connections.made(self, peer)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._connections.lost(self)

    def data_received(self, data: bytes) -> None:
        if self._headers_since is None and self.conn.their_state is h11.IDLE:
            self._headers_since = time.monotonic()
        super().data_received(data)
        self._body_bytes += len(data)
        if self.cycle is not self._request:
            self._request = self.cycle
            self._connections.active(self)
            self._headers_since = None
            self._body_seconds, self._body_bytes = 0.0, 0

    def on_response_complete(self) -> None:
        self._connections.active(self)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answers malformed HTTP, which the application never sees, with the security headers."""
        headers = {"Content-Type": "text/plain; charset=utf-8", "Connection": "close", **ALWAYS}
        for event in (h11.Response(status_code=400, headers=[*headers.items()]), h11.Data(msg.encode())):
            self.transport.write(self.conn.send(event))
        self.transport.write(self.conn.send(h11.EndOfMessage()))
        self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reader_deadline = None

    @property
    def idle(self) -> bool:
        """True if no request is in progress."""
        return self.conn.their_state is h11.IDLE and not self.transport.is_closing()

    def overdue(self, now: float) -> str | None:
        """Returns the reason to close the connection at time ``now``, or None."""
        passed, self._looked_at = now - (self._looked_at or now), now
        if self.transport.is_closing() and self._reader_deadline is None:
            self._expect_reader(self.transport.get_write_buffer_size())
        if self._reader_deadline is not None and now > self._reader_deadline:
            return READER
        if self.conn.their_state is h11.IDLE:
            since = self._headers_since
            return HEADERS if since is not None and now - since > self._sizing.header_seconds else None
        if self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused:
            self._body_seconds += passed
            return BODY if self._body_seconds > self._body_allowance() else None
        return None

    def close(self, reason: str) -> None:
        """Closes the connection and drops unsent data. Sends the reason if no response has begun."""
        if (
            reason in {HEADERS, BODY}
            and (self._request is not None or self.conn.trailing_data[0])
            and not self._answering()
        ):
            self.transport.write(refusal(FerretError("request.timeout", self._explanation(reason))))
            self._disconnect()
            self.transport.close()
        else:
            self.transport.abort()

    def _disconnect(self) -> None:
        """Notifies an application that waits for the body of the disconnect."""
        cycle = cast(Any, self.cycle)
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()

    def _answering(self) -> bool:
        cycle = cast(Any, self.cycle)
        return self.transport.is_closing() or (
            cycle is not None and cycle.response_started and self.conn.their_state is not h11.IDLE
        )

    def _body_allowance(self) -> float:
        cycle = cast(Any, self.cycle)
        # After the response, further bytes of the body do not extend the time.
        counted = 0 if cycle is not None and cycle.response_complete else self._body_bytes
        return self._sizing.body_seconds + counted / self._sizing.body_bytes_per_second

    def _expect_reader(self, waiting: int) -> None:
        allowance = self._sizing.body_seconds + waiting / self._sizing.body_bytes_per_second
        self._reader_deadline = time.monotonic() + allowance

    def _explanation(self, reason: str) -> str:
        if reason == HEADERS:
            return f"the request's headers were not complete after {self._sizing.header_seconds:g} s; send it again"
        return (
            f"the body came slower than {self._sizing.body_bytes_per_second} bytes per second for more than "
            f"{self._sizing.body_seconds:g} s; send it again over a faster connection"
        )


def refusal(error: FerretError) -> bytes:
    """Returns a complete HTTP/1.1 response with the problem document (RFC 9457) that closes the connection."""
    status = HTTPStatus(error.problem.status)
    document = {
        "type": f"urn:ferret:problem:{error.code}",
        **error.to_json(),
        "instance": "",
        "request_id": secrets.token_hex(8),
    }
    body = json.dumps(document).encode()
    head = [
        f"HTTP/1.1 {status} {status.phrase}",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        f"Retry-After: {RETRY_SECONDS}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in ALWAYS.items()),
    ]
    return "\r\n".join([*head, "", ""]).encode() + body
