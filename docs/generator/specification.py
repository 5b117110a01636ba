"""The page that describes a specification table by table, from its JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import tables
from pydantic import BaseModel

from ferret_core import catalog
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.training.config import LocalConfig, ZerothOrderConfig

Object = dict[str, Any]

PLUGINS: dict[str, catalog.Kind] = {"dataset": "datasets", "partition": "partitions", "algorithm": "algorithms"}
LOCAL: dict[str, type[BaseModel]] = {
    "Local training by gradients": LocalConfig,
    "Local training by zeroth-order steps": ZerothOrderConfig,
}
"""The kinds of ``[algorithm.local]`` by title."""


def page() -> str:
    """Returns Markdown: the top level, then every table, with the options of each plug-in."""
    schema = ExperimentSpec.model_json_schema()
    top = {name: field for name, field in schema["properties"].items() if not _below(field, schema)}
    lines = ["", "## Top level", "", *_fields(top, schema, schema.get("required", []))]
    for name, field in schema["properties"].items():
        if name in PLUGINS:
            lines += ["", f"## `[{name}]`", "", field.get("description", "") + ".", "", *_plugins(name)]
        elif below := _below(field, schema):
            lines += ["", f"## `[{name}]`", "", *_prose(below), *_fields(below["properties"], schema, _required(below))]
    return "\n".join(lines) + "\n"


def _plugins(section: str) -> Iterator[str]:
    """Yields the table of each name that the ``section`` accepts, and the tables of local training."""
    yield f"`name` (required) is one of the names below. The other options are in the same table, `[{section}]`."
    for entry in catalog.entries(PLUGINS[section]):
        if catalog.base(entry.name) == entry.name:
            yield from ("", f'### `{section}.name = "{entry.name}"`', "", entry.title, "", *_options(entry.options))
    if section == "algorithm":
        for title, config in LOCAL.items():
            schema = config.model_json_schema()
            yield from ("", f"### {title}", "", *_prose(schema), *_fields(schema["properties"], schema, []))


def _options(schema: Object) -> Iterator[str]:
    """Yields the table of a plug-in's options, and what it changes in local training."""
    fields = schema.get("properties", {})
    if plain := {name: field for name, field in fields.items() if not _below(field, schema)}:
        yield from (*_fields(plain, schema, _required(schema)), "")
    for name, field in fields.items():
        if below := _below(field, schema):
            title = next(
                title for title, config in LOCAL.items() if set(below["properties"]) == set(config.model_fields)
            )
            known = {key: value.default for key, value in LOCAL[title].model_fields.items()}
            given = {key: value["default"] for key, value in below["properties"].items() if "default" in value}
            changed = {k: v for k, v in {**given, **(field.get("default") or {})}.items() if v != known[k]}
            values = ", ".join(f"`{key} = {json.dumps(value)}`" for key, value in changed.items())
            link = f"[{title}](#{title.lower().replace(' ', '-')})"
            yield f"`[algorithm.{name}]`: {link}" + (f", with {values}" if values else "") + "."


def _fields(fields: Object, schema: Object, required: list[str]) -> Iterator[str]:
    yield from tables.table("field", "type", "")
    for name, field in fields.items():
        label = f"`{name}`" + (" (required)" if name in required else "")
        unit = f" ({field['unit']})" if "unit" in field else ""
        yield tables.row(label, _type(field, schema), field.get("description", "") + unit + "." + tables.default(field))


def _type(field: Object, schema: Object) -> str:
    return tables.type_of(field, lambda name: _type(schema["$defs"][name], schema)).replace(" or null", "")


def _below(field: Object, schema: Object) -> Object | None:
    """Returns the table that a field names, None for a value."""
    reference = field.get("$ref", "").rsplit("/")[-1]
    found = schema.get("$defs", {}).get(reference, {})
    return found if found.get("properties") else None


def _prose(schema: Object) -> Iterator[str]:
    if description := schema.get("description"):
        yield from (description, "")


def _required(schema: Object) -> list[str]:
    return list(schema.get("required", []))
