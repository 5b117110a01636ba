"""Raw HTTP responses for connections that never reach the application."""

from __future__ import annotations

import json
import secrets
from http import HTTPStatus

from ferret_api.http.security_headers import ALWAYS
from ferret_core.protocol.errors import FerretError

RETRY_SECONDS = 5


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
