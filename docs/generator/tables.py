"""Tables of Markdown, and JSON Schemas as a reader writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Object = dict[str, Any]


def table(*heads: str) -> Iterator[str]:
    """Yields the first two lines of a table."""
    yield row(*heads)
    yield "|" + "---|" * len(heads)


def row(*cells: str) -> str:
    """Returns a line of a table; blanks are joined, bars escaped."""
    return "| " + " | ".join(re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in cells) + " |"


def type_of(schema: Object, link: Callable[[str], str]) -> str:
    """Returns the type of a ``schema``; ``link`` makes the text of a reference from the schema's name."""
    if reference := schema.get("$ref"):
        return link(reference.rsplit("/")[-1])
    if parts := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return " or ".join(type_of(part, link) for part in parts)
    if values := schema.get("enum") or [schema[key] for key in ("const",) if key in schema]:
        return ", ".join(f"`{json.dumps(value)}`" for value in values)
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}), link) or 'any'}"
    if isinstance(values := schema.get("additionalProperties"), dict):
        return f"object of {type_of(values, link)}"
    return schema.get("type", "") + (f" ({schema['format']})" if "format" in schema else "")


def default(schema: Object) -> str:
    """Returns a sentence with the default, or nothing."""
    value = schema.get("default")
    return "" if value is None or isinstance(value, dict | list) else f" Default: `{json.dumps(value)}`."
