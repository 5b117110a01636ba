"""The OpenAPI document tells the truth: our problem documents instead of FastAPI's, per operation and status.

``python -m api.openapi`` writes ``openapi.json`` at the repository's root; ``--check`` compares instead and fails on
drift.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from api.errors import MEDIA_TYPE
from api.schemas import Json, Problem
from ferret_core.protocol.errors import PROBLEMS

FILE = Path(__file__).parents[1] / "openapi.json"
CODES = "x-problem-codes"
_REF = "#/components/schemas/{model}"

Responses = dict[int | str, dict[str, Any]]


def problems(*codes: str) -> Responses:
    """The ``responses`` of an endpoint that raises these codes."""
    by_status: defaultdict[int, list[str]] = defaultdict(list)
    for code in codes:
        by_status[PROBLEMS[code].status].append(code)
    return {
        status: {
            "description": "\n".join(f"`{code}`: {PROBLEMS[code].title}." for code in found),
            "content": {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}},
            CODES: found,
        }
        for status, found in by_status.items()
    }


def document(title: str, version: str, description: str, routes: list[BaseRoute]) -> Json:
    """The OpenAPI 3.1 document of the routes, with sorted keys."""
    found = get_openapi(title=title, version=version, description=description, routes=routes)
    schemas = found["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    _, own = models_json_schema([(Problem, "serialization")], ref_template=_REF)
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
    if "parameters" in operation or "requestBody" in operation:
        codes += ["request.invalid"]
    if "requestBody" in operation:
        codes += ["request.too_large"]
    for status, response in problems(*codes, "internal").items():
        responses[str(status)] = response


def main(arguments: list[str] | None = None) -> int:
    from api.app import create_app

    parser = argparse.ArgumentParser(prog="python -m api.openapi", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    text = json.dumps(create_app().openapi(), indent=2, ensure_ascii=False) + "\n"
    if not parser.parse_args(arguments).check:
        FILE.write_text(text, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{FILE.name} is stale: run `python -m api.openapi` and commit the result\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
