"""Algorithms, datasets and models that an experiment can choose by name."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from ferret_core.protocol.resources.base import Json, Resource
from ferret_core.protocol.sanitize import Line, Words


class CatalogEntry(Resource):
    """An algorithm, dataset or model that an experiment can choose by name."""

    name: Line
    title: Line
    description: Words
    options: Json = Field(
        validation_alias=AliasChoices("schema", "options"),
        serialization_alias="schema",
        description="JSON Schema of the entry's options",
    )


class CatalogEntryList(Resource):
    """Entries by name. The presets of an algorithm follow it and can be chosen like algorithms."""

    items: list[CatalogEntry]
