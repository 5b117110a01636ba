"""The OpenAPI document, with Ferret's problem documents per operation and status instead of FastAPI's errors."""

from __future__ import annotations

import json
from collections.abc import Iterable

from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from ferret_api.http.errors import CODES, problems
from ferret_api.schemas import REF
from ferret_core.protocol.resources.base import Json, Problem

ROLES = "x-ferret-roles"
"""Extension that lists who may call an operation: roles of users, ``participant``, or ``anyone``. Absent without a
rule."""


def build(title: str, version: str, description: str, routes: list[BaseRoute], own: Iterable[BaseRoute]) -> Json:
    """Builds the OpenAPI 3.1 document of the routes, with sorted keys. ``own`` are the routes of Ferret's routers."""
    found = get_openapi(title=title, version=version, description=description, routes=routes)
    schemas = found["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _, problem = models_json_schema([(Problem, "serialization")], ref_template=REF)
    schemas |= problem["$defs"]
    for path in found["paths"].values():
        for operation in path.values():
            _add_common_problems(operation)
    for route in own:
        assert isinstance(route, APIRoute)
        if (roles := _roles(route.dependant)) is not None:
            for method in route.methods or ():
                found["paths"][route.path_format][method.lower()][ROLES] = roles
    return json.loads(json.dumps(found, sort_keys=True))


def _roles(dependant: Dependant) -> list[str] | None:
    """Returns the roles that all rules among the dependencies admit; None without a rule."""
    found = [getattr(dependant.call, "roles", None), *map(_roles, dependant.dependencies)]
    rules = [rule for rule in found if rule is not None]
    return [role for role in rules[0] if all(role in rule for rule in rules)] if rules else None


def _add_common_problems(operation: Json) -> None:
    responses: Json = operation["responses"]
    codes: list[str] = [code for response in responses.values() for code in response.get(CODES, [])]
    codes += ["request.invalid"]
    if "security" in operation:
        codes += ["auth.missing", "auth.invalid", "auth.forbidden", "server.not_ready"]
    if any("session" in scheme for scheme in operation.get("security", [])):
        codes += ["auth.cross_site"]
    if "requestBody" in operation:
        codes += ["request.too_large"]
    for status, response in problems(*codes, "host.unknown", "request.too_many", "internal").items():
        responses[str(status)] = response
