"""Catalog entries as the API shows them."""

from __future__ import annotations

from pydantic import Field

from ferret_api.schemas import Json, Resource


class CatalogEntry(Resource):
    """Something that an experiment can choose by name."""

    name: str
    title: str
    description: str
    options: Json = Field(serialization_alias="schema", description="JSON Schema of the entry's options")


class CatalogEntryList(Resource):
    """Entries by name; an algorithm is followed by its presets, which can be chosen as it can."""

    items: list[CatalogEntry]
