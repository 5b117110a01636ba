"""Error responses as ``application/problem+json`` (RFC 9457), and their description in the OpenAPI document."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import ErrorDetails
from sqlalchemy.exc import InterfaceError, OperationalError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match

from ferret_api.limits.rate_limits import RateLimitExceeded
from ferret_api.schemas import PREFIX, REF
from ferret_core.protocol.errors import MOST_ERRORS, PROBLEMS, FerretError, FieldError, FieldErrors, described
from ferret_core.protocol.spec import ExperimentSpec

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
SUBMIT = "submit_experiment"  # the operation that takes a specification as its body

_CODES = {
    400: "request.invalid",
    404: "route.not_found",
    405: "method.not_allowed",
    413: "request.too_large",
    416: "range.invalid",
}
SECRETS = frozenset({"code", "current", "password", "token"})
"""Request fields with secrets, which no response repeats."""
METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "5"}, 503: {"Retry-After": "5"}}


def problem(request: Request, error: FerretError, headers: Mapping[str, str] | None = None) -> Response:
    """Returns the response for ``error``."""
    document = {
        "type": f"urn:ferret:problem:{error.code}",
        **error.to_json(),
        "instance": request.url.path,
        "request_id": request.state.request_id,
    }
    status = error.problem.status
    wait = error.headers if isinstance(error, RateLimitExceeded) else {}
    return Response(
        json.dumps(document, allow_nan=False),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={**_HEADERS.get(status, {}), **wait, **(headers or {})},
    )


def install(app: FastAPI) -> None:
    """Installs the handlers of all exceptions that endpoints raise. The middleware catches unexpected ones."""
    app.add_exception_handler(FerretError, _ferret_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_exception)
    app.add_exception_handler(OperationalError, _database_error)
    app.add_exception_handler(InterfaceError, _database_error)


async def _ferret_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, FerretError)
    if error.problem.status >= 500:
        logger.error("%s: %s", error.code, error.detail)
    return problem(request, error)


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # Bounded work, since this runs on the event loop.
    found, omitted = error.errors()[:MOST_ERRORS], len(error.errors()) - MOST_ERRORS
    submitted = getattr(request.scope["route"], "operation_id", None) == SUBMIT and found[0]["loc"][0] == "body"
    # FastAPI's first part ("body", "query", …) is dropped, which leaves the field name that the client sent.
    named = [{**raw, "loc": raw["loc"][1:] or raw["loc"], "input": _public(raw)} for raw in found]
    fields = described(cast(list[ErrorDetails], named), model=ExperimentSpec if submitted else None).told
    told = [_not_json(raw) or field for raw, field in zip(found, fields, strict=True)]
    errors = FieldErrors(told, max(0, omitted))
    return problem(request, FerretError.of_fields("spec.invalid" if submitted else "request.invalid", errors))


def _public(raw: Mapping[str, Any]) -> Any:
    """Returns the given value, or None if it is or contains a secret."""
    given = raw.get("input")
    secret = raw["loc"][-1] in SECRETS or (isinstance(given, Mapping) and not SECRETS.isdisjoint(given))
    return None if secret else given


def _not_json(raw: Mapping[str, Any]) -> FieldError | None:
    if raw["type"] == "json_invalid":
        return FieldError(field="body", message=f"is not JSON: {raw['ctx']['error']} at character {raw['loc'][-1]}")
    if isinstance(raw.get("input"), bytes):
        return FieldError(field="body", message="send JSON with the header `Content-Type: application/json`")
    return None


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code < 400:
        return Response(status_code=error.status_code, headers=error.headers)
    if error.status_code == 405:
        error.headers = {**(error.headers or {}), "Allow": ", ".join(_allowed(request)) or "GET, HEAD"}
    code = _CODES.get(error.status_code, "internal")
    return problem(request, FerretError(code, _detail(request, error)), error.headers)


def _allowed(request: Request) -> list[str]:
    """Returns the methods of all routes at the path. The router itself lists only the first route's methods."""
    routes: list[BaseRoute] = request.app.router.routes
    return [
        method
        for method in METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]


def _detail(request: Request, error: HTTPException) -> str:
    match error.status_code:
        case 404:
            return f"{request.url.path} does not exist here; {PREFIX}/openapi.json lists all addresses"
        case 405:
            return f"{request.method} is not allowed here; use {(error.headers or {}).get('Allow', 'GET')}"
        case _:
            return error.detail


async def _database_error(request: Request, error: Exception) -> Response:
    logger.error("the database failed: %s", error)
    return problem(request, FerretError("server.not_ready", "the database does not respond; see /readyz and try again"))


CODES = "x-problem-codes"

Responses = dict[int | str, dict[str, Any]]


def problems(*codes: str) -> Responses:
    """Returns the ``responses`` of an endpoint that raises these codes."""
    by_status: defaultdict[int, list[str]] = defaultdict(list)
    for code in codes:
        by_status[PROBLEMS[code].status].append(code)
    return {
        status: {
            "description": "\n".join(f"`{code}`: {PROBLEMS[code].title}." for code in found),
            "content": {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}},
            CODES: found,
        }
        for status, found in by_status.items()
    }
