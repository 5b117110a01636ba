"""The page that describes the REST interface, from ``openapi.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

Object = dict[str, Any]


def page(openapi: Object) -> str:
    """Markdown: every operation under its tag, then every schema that they name."""
    operations = [
        (operation["tags"][0], method.upper(), path, operation)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    ]
    lines: list[str] = []
    for tag, found in groupby(sorted(operations, key=lambda entry: entry[0]), key=lambda entry: entry[0]):
        lines += [f"## {tag.capitalize()}", ""]
        for _, method, path, operation in found:
            head = f"### `{method} {path}` {{ #{operation['operationId']} data-toc-label='{operation['summary']}' }}"
            lines += [head, "", *_operation(operation), ""]
    lines += ["## Schemas", ""]
    for name, schema in openapi["components"]["schemas"].items():
        lines += [f"### {name}", "", *_schema(schema), ""]
    return "\n".join(lines)


def _operation(operation: Object) -> Iterator[str]:
    yield operation["description"]
    yield ""
    if parameters := operation.get("parameters"):
        yield from _table("parameter", "in", "type", "")
        for parameter in parameters:
            name = f"`{parameter['name']}`" + (" (required)" if parameter.get("required") else "")
            description = parameter.get("description", "") + _default(parameter["schema"])
            yield _row(name, parameter["in"], _type(parameter["schema"]), description)
        yield ""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body: {_type(content.get('schema', {})) or 'bytes'}, `{kind}`"
        yield ""
    yield from _table("answer", "", "")
    for status, answer in operation["responses"].items():
        kinds = [f"{_type(content.get('schema', {}))} `{kind}`" for kind, content in answer.get("content", {}).items()]
        yield _row(f"`{status}`", " or ".join(kinds), answer["description"].replace("\n", "<br>"))


def _schema(schema: Object) -> Iterator[str]:
    yield schema.get("description", "")
    yield ""
    if values := schema.get("enum"):
        yield "One of " + ", ".join(f"`{value}`" for value in values)
    if fields := schema.get("properties"):
        yield from _table("field", "type", "")
        for name, field in fields.items():
            required = " (required)" if name in schema.get("required", []) else ""
            yield _row(f"`{name}`{required}", _type(field), field.get("description", "") + _default(field))


def _type(schema: Object) -> str:
    """The type as a reader writes it, with links to the schemas on this page."""
    if reference := schema.get("$ref"):
        name = reference.rsplit("/")[-1]
        return f"[{name}](#{name.lower()})"
    if parts := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return " or ".join(_type(part) for part in parts)
    if values := schema.get("enum") or [schema[key] for key in ("const",) if key in schema]:
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {})) or 'any'}"
    if isinstance(values := schema.get("additionalProperties"), dict):
        return f"object of {_type(values)}"
    return schema.get("type", "") + (f" ({schema['format']})" if "format" in schema else "")


def _default(schema: Object) -> str:
    default = schema.get("default")
    return "" if default is None or isinstance(default, dict | list) else f" Default: `{json.dumps(default)}`."


def _table(*heads: str) -> Iterator[str]:
    yield _row(*heads)
    yield "|" + "---|" * len(heads)


def _row(*cells: str) -> str:
    return "| " + " | ".join(re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in cells) + " |"
