"""Every error is answered as ``application/problem+json`` (RFC 9457), wherever it was raised."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import ErrorDetails
from sqlalchemy.exc import InterfaceError, OperationalError
from starlette.exceptions import HTTPException

from ferret_api.schemas import PREFIX
from ferret_core.protocol.errors import FerretError, FieldError, field_errors
from ferret_core.protocol.spec import ExperimentSpec

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
SUBMIT = "submit_experiment"  # the operation whose body is a specification

_CODES = {
    400: "request.invalid",
    404: "route.not_found",
    405: "method.not_allowed",
    413: "request.too_large",
    416: "range.invalid",
}
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "5"}}


def problem(request: Request, error: FerretError, headers: Mapping[str, str] | None = None) -> Response:
    """The answer for ``error``."""
    document = {
        "type": f"urn:ferret:problem:{error.code}",
        **error.to_json(),
        "instance": request.url.path,
        "request_id": request.state.request_id,
    }
    status = error.problem.status
    return Response(
        json.dumps(document, allow_nan=False),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={**_HEADERS.get(status, {}), **(headers or {})},
    )


def install(app: FastAPI) -> None:
    """Renders every exception that an endpoint can raise; the unexpected ones are caught by the middleware."""
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
    found = error.errors()
    submitted = getattr(request.scope["route"], "operation_id", None) == SUBMIT and found[0]["loc"][0] == "body"
    # Without FastAPI's first word ("body", "query", …), a field is named as its sender knows it.
    named = [{**raw, "loc": raw["loc"][1:] or raw["loc"]} for raw in found]
    fields = field_errors(cast(list[ErrorDetails], named), model=ExperimentSpec if submitted else None)
    errors = [_not_json(raw) or field for raw, field in zip(found, fields, strict=True)]
    return problem(request, FerretError.of_fields("spec.invalid" if submitted else "request.invalid", errors))


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
    code = _CODES.get(error.status_code, "internal")
    return problem(request, FerretError(code, _detail(request, error)), error.headers)


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
    return problem(request, FerretError("server.not_ready", "the database does not answer; see /readyz and try again"))
