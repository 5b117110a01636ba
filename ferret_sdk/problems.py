"""Turns a server's refusal back into the :class:`FerretError` it was raised as."""

from __future__ import annotations

import json
from typing import Any, cast

from pydantic import ValidationError

from ferret_core.protocol.errors import PROBLEMS, FerretError, FieldError

# For an answer whose code this version does not know, or that a proxy gave instead of Ferret.
_BY_STATUS = {
    401: "auth.invalid",
    403: "auth.forbidden",
    404: "route.not_found",
    405: "method.not_allowed",
    409: "experiment.conflict",
    410: "round.closed",
    413: "request.too_large",
    422: "request.invalid",
    429: "server.not_ready",
    502: "server.unreachable",
    503: "server.not_ready",
    504: "server.unreachable",
}


def error_of(status: int, body: bytes, url: str) -> FerretError:
    """The error in a problem document (RFC 9457), or one by status if the body is none."""
    document = _object(body)
    code = document.get("code")
    fallback = _BY_STATUS.get(status, "internal" if document else "server.unexpected")
    detail = str(document.get("detail") or document.get("title") or f"{url} answered with status {status}")
    if code not in PROBLEMS and code is not None:
        detail = f"{detail} ({code})"
    if status >= 500 and document.get("request_id"):
        detail = f"{detail} (request {document['request_id']}; the server's log says more)"
    return FerretError(code if code in PROBLEMS else fallback, detail, _field_errors(document.get("errors")))


def _object(body: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(body)
    except ValueError:
        return {}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _field_errors(value: Any) -> list[FieldError]:
    try:
        return [FieldError.model_validate(entry) for entry in value or []]
    except (TypeError, ValidationError):
        return []
