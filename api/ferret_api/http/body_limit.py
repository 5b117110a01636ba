"""ASGI middleware that limits request bodies by operation: their bytes and, for JSON, the number and depth of values.

Parsing, validation and the response run on the event loop, where one large body would delay all other requests. So
bodies that would become large objects, or a long list of errors, are refused before they are parsed.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ferret_api.http.errors import SUBMIT, problem
from ferret_api.settings import ApiSettings
from ferret_core.protocol import bounded_json
from ferret_core.protocol.errors import FerretError

COMMAND_BYTES = 8 << 10
FAILURE_BYTES = 32 << 10  # 2,000 characters, each at most 12 bytes of JSON
EDIT_BYTES = 256 << 10  # 20,000 characters of notes, and the tags
QUESTION_BYTES = 400 << 10  # 32,000 characters of a question and its input
MOST_VALUES = 4_000  # strings, brackets and commas
DEEPEST = 32


class BodyLimit:
    """Counts a body while the operation reads it; raises HTTPException 413 beyond a limit, 400 for UTF-16."""

    def __init__(self, app: ASGIApp, settings: ApiSettings) -> None:
        self.app = app
        document = settings.max_request_bytes
        self.usual = min(COMMAND_BYTES, document)
        self.uploads = {"upload_contribution": settings.max_upload_bytes, "upload_part": settings.part_bytes}
        self.limits = self.uploads | {
            SUBMIT: document,
            "clone_experiment": document,
            "plan_draft": document,
            "revise_draft": document,
            "edit_experiment": min(EDIT_BYTES, document),
            "ask_model": min(QUESTION_BYTES, document),
            "report_failure": min(FAILURE_BYTES, document),
        }
        self.octets = {*self.uploads, "put_prekeys", "put_shares", "put_survivors", "put_unmask"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if "content-length" in headers and "transfer-encoding" in headers:
            # A proxy and this server may disagree about where such a request ends (RFC 9112, section 6.1).
            error = FerretError("request.invalid", "send either Content-Length or Transfer-Encoding, not both")
            await problem(Request(scope), error, {"Connection": "close"})(scope, receive, send)
            return
        declared = headers.get("content-length", "")
        received = 0
        parts = list[bytes]()

        async def receive_counted() -> Message:
            nonlocal received
            # A body is read only after routing, so the operation is known here.
            operation = getattr(scope.get("route"), "operation_id", None)
            limit = self.limits.get(operation, self.usual) if operation else self.usual
            if declared.isdecimal() and int(declared) > limit:
                raise _too_large(limit)
            message = await receive()
            body: bytes = message.get("body", b"")
            received += len(body)
            if received > limit:
                raise _too_large(limit)
            if operation not in self.octets:
                parts.append(body)
                if not message.get("more_body"):
                    _require_modest(b"".join(parts))
            return message

        await self.app(scope, receive_counted, send)


def _require_modest(body: bytes) -> None:
    """Raises HTTPException 413 for JSON of too many or too deep values, 400 if its encoding would hide them."""
    if b"\0" in body:  # UTF-16, which Python's parser accepts too
        raise HTTPException(400, "the body has a NUL byte: send JSON in UTF-8")
    try:
        bounded_json.require_outline(body, MOST_VALUES, DEEPEST)
    except ValueError as error:
        raise HTTPException(413, f"the body {error}; no request needs that") from error


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"the body is larger than {limit} bytes; the operator can raise some limits")
