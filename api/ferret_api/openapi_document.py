"""The OpenAPI document tells the truth: our problem documents instead of FastAPI's, per operation and status."""

from __future__ import annotations

import json

from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from ferret_api.problems import CODES, problems
from ferret_api.schemas import REF, Json, Problem


def build(title: str, version: str, description: str, routes: list[BaseRoute]) -> Json:
    """The OpenAPI 3.1 document of the routes, with sorted keys."""
    found = get_openapi(title=title, version=version, description=description, routes=routes)
    schemas = found["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _, own = models_json_schema([(Problem, "serialization")], ref_template=REF)
    schemas |= own["$defs"]
    for path in found["paths"].values():
        for operation in path.values():
            _add_common_problems(operation)
    return json.loads(json.dumps(found, sort_keys=True))


def _add_common_problems(operation: Json) -> None:
    """What any operation of its kind can answer, beside the codes that its endpoint names."""
    responses: Json = operation["responses"]
    codes: list[str] = [code for response in responses.values() for code in response.get(CODES, [])]
    if "security" in operation:
        codes += ["auth.missing", "auth.invalid", "auth.forbidden", "server.not_ready"]
    if any("session" in scheme for scheme in operation.get("security", [])):
        codes += ["auth.cross_site"]
    if "parameters" in operation or "requestBody" in operation:
        codes += ["request.invalid"]
    if "requestBody" in operation:
        codes += ["request.too_large"]
    for status, response in problems(*codes, "host.unknown", "request.too_many", "internal").items():
        responses[str(status)] = response
