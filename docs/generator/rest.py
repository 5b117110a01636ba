"""The pages that describe the REST interface, one per resource, from ``openapi.json``, and their index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import tables

Object = dict[str, Any]
Operation = tuple[str, str, Object]

SHARED = "schemas"
"""The page of schemas that several resources use."""


def index(openapi: Object) -> str:
    """Returns Markdown: a link to the page of each tag, with its operations."""
    found: dict[str, list[str]] = {}
    for methods in openapi["paths"].values():
        for operation in methods.values():
            found.setdefault(operation["tags"][0], []).append(operation["summary"].lower())
    lines = ["", "## Resources", "", *tables.table("resource", "operations")]
    lines += [tables.row(f"[{tag}](rest/{tag}.md)", ", ".join(names)) for tag, names in sorted(found.items())]
    return "\n".join([*lines, tables.row(f"[shared schemas](rest/{SHARED}.md)", "")]) + "\n"


def pages(openapi: Object) -> dict[str, str]:
    """Returns Markdown by file name: a page for each tag with its operations and schemas, and one of shared schemas."""
    operations: dict[str, list[Operation]] = {}
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            operations.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    schemas = openapi["components"]["schemas"]
    homes = _homes(operations, schemas)
    found = {tag: "\n".join(_resource(tag, of_tag, schemas, homes)) for tag, of_tag in sorted(operations.items())}
    shared = [line for name in schemas if homes[name] == SHARED for line in _schema(name, schemas[name], SHARED, homes)]
    return {**found, SHARED: "\n".join(["# Shared schemas", "", *shared])}


def _homes(operations: dict[str, list[Operation]], schemas: Object) -> dict[str, str]:
    """Returns the page of each schema: that of its only tag, or ``SHARED``."""
    used = {tag: _references([operation for _, _, operation in found], schemas) for tag, found in operations.items()}
    homes: dict[str, str] = {}
    for name in schemas:
        tags = [tag for tag, names in used.items() if name in names]
        homes[name] = tags[0] if len(tags) == 1 else SHARED
    return homes


def _references(value: Any, schemas: Object) -> set[str]:
    """Returns the names of all schemas in ``value``, and of those in them."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        match waiting.pop():
            case {"$ref": str(reference)} if (name := reference.rsplit("/")[-1]) in schemas and name not in found:
                found.add(name)
                waiting.append(schemas[name])
            case dict(parts):
                waiting += parts.values()
            case list(parts):
                waiting += parts
    return found


def _resource(tag: str, operations: list[Operation], schemas: Object, homes: dict[str, str]) -> Iterator[str]:
    yield from (f"# REST: {tag}", "")
    yield from tables.table("operation", "")
    for method, path, operation in operations:
        yield tables.row(f"[`{method} {path}`](#{operation['operationId']})", operation["summary"])
    for method, path, operation in operations:
        head = f"## `{method} {path}` {{ #{operation['operationId']} data-toc-label='{operation['summary']}' }}"
        yield from ("", head, "", *_operation(operation, tag, homes))
    if own := [name for name in schemas if homes[name] == tag]:
        yield from ("", "## Schemas", "")
        for name in own:
            yield from _schema(name, schemas[name], tag, homes)


def _operation(operation: Object, page: str, homes: dict[str, str]) -> Iterator[str]:
    yield operation["description"]
    yield ""
    if parameters := operation.get("parameters"):
        yield from tables.table("parameter", "in", "type", "")
        for parameter in parameters:
            name = f"`{parameter['name']}`" + (" (required)" if parameter.get("required") else "")
            description = parameter.get("description", "") + tables.default(parameter["schema"])
            yield tables.row(name, parameter["in"], _type(parameter["schema"], page, homes), description)
        yield ""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body: {_type(content.get('schema', {}), page, homes) or 'bytes'}, `{kind}`"
        yield ""
        if example := _example(content):
            yield from ("```json", json.dumps(example, indent=2), "```", "")
    yield from tables.table("answer", "", "")
    for status, answer in operation["responses"].items():
        contents = answer.get("content", {}).items()
        kinds = [f"{_type(content.get('schema', {}), page, homes)} `{kind}`" for kind, content in contents]
        yield tables.row(f"`{status}`", " or ".join(kinds), answer["description"].replace("\n", "<br>"))


def _example(content: Object) -> Any:
    """Returns the example of a body, None without one."""
    for example in content.get("examples", {}).values():
        return example.get("value")
    return content.get("example")


def _schema(name: str, schema: Object, page: str, homes: dict[str, str]) -> Iterator[str]:
    yield from (f"### {name}", "", schema.get("description", ""), "")
    if values := schema.get("enum"):
        yield from ("One of " + ", ".join(f"`{value}`" for value in values), "")
    if fields := schema.get("properties"):
        yield from tables.table("field", "type", "")
        for field, value in fields.items():
            required = " (required)" if field in schema.get("required", []) else ""
            description = value.get("description", "") + tables.default(value)
            yield tables.row(f"`{field}`{required}", _type(value, page, homes), description)
        yield ""


def _type(schema: Object, page: str, homes: dict[str, str]) -> str:
    def link(name: str) -> str:
        home = "" if homes[name] == page else f"{homes[name]}.md"
        return f"[{name}]({home}#{name.lower()})"

    return tables.type_of(schema, link)
