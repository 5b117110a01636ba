"""Conversion of a server's error response to the :class:`FerretError` it was raised as."""

from __future__ import annotations

import json
from typing import Any, TypeGuard, cast

from pydantic import ValidationError

from ferret_core.protocol.errors import LONGEST_DETAIL, MOST_ERRORS, PROBLEMS, FerretError, FieldError, FieldErrors
from ferret_core.protocol.resources.base import Failure

# For responses with an unknown code, or from a proxy instead of Ferret.
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
    """Returns the error in a problem document (RFC 9457), or one by status if the body is not such a document.

    At most :data:`LONGEST_DETAIL` characters and :data:`MOST_ERRORS` fields of the server's text are kept.
    """
    document = _object(body)
    code = document.get("code")
    fallback = _BY_STATUS.get(status, "internal" if document else "server.unexpected")
    detail = _text(document.get("detail") or document.get("title") or f"{url} answered with status {status}")
    if code is not None and not _known(code):
        detail = f"{detail} ({_text(code)[:100]})"
    if status >= 500 and document.get("request_id"):
        detail = f"{detail} (request {_text(document['request_id'])[:100]}; the server's log says more)"
    errors = FieldErrors(_field_errors(document.get("errors")), _count(document.get("errors_omitted")))
    return FerretError(code if _known(code) else fallback, detail, errors)


def recorded(failure: Failure | None, prefix: str) -> FerretError:
    """Returns the error that an experiment ended with, as recorded by the server. ``prefix`` begins its detail."""
    if failure is None or not failure.detail:
        return FerretError("internal", f"{prefix}: no reason was recorded")
    code = failure.code if _known(failure.code) else "internal"
    return FerretError(code, f"{prefix}: {failure.detail}", failure.errors)


def _known(code: Any) -> TypeGuard[str]:
    return isinstance(code, str) and code in PROBLEMS


def _text(value: Any) -> str:
    return value[:LONGEST_DETAIL] if isinstance(value, str) else f"a {type(value).__name__} where a text belongs"


def _object(body: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _field_errors(value: Any) -> list[FieldError]:
    entries = cast(list[Any], value)[:MOST_ERRORS] if isinstance(value, list) else []
    try:
        return [FieldError.model_validate(entry) for entry in entries]
    except ValidationError:
        return []
