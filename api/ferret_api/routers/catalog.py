"""Endpoints of the catalog: the algorithms, datasets, models and partitions that an experiment can use."""

from __future__ import annotations

from enum import StrEnum

from fastapi import APIRouter

from ferret_api.access import ViewerOnly
from ferret_api.http.errors import problems
from ferret_api.schemas import PREFIX
from ferret_core.protocol.resources.drafts import CatalogEntry, CatalogEntryList

router = APIRouter(prefix=f"{PREFIX}/catalog", tags=["catalog"], dependencies=[ViewerOnly])


class CatalogKind(StrEnum):
    """The sections of the catalog."""

    ALGORITHMS = "algorithms"
    DATASETS = "datasets"
    EXPERIMENTS = "experiments"
    MODELS = "models"
    PARTITIONS = "partitions"


@router.get("/{kind}", operation_id="list_catalog")
def list_catalog(kind: CatalogKind) -> CatalogEntryList:
    """Lists the entries of a section, each with the JSON Schema of its options. Requires the role viewer."""
    from ferret_core import catalog  # brings torch with it

    return CatalogEntryList(items=[CatalogEntry.model_validate(entry) for entry in catalog.entries(kind.value)])


@router.get("/{kind}/{name}", operation_id="get_catalog_entry", responses=problems("catalog.not_found"))
def get_catalog_entry(kind: CatalogKind, name: str) -> CatalogEntry:
    """Returns one entry with the JSON Schema of its options. Requires the role viewer."""
    from ferret_core import catalog  # brings torch with it

    return CatalogEntry.model_validate(catalog.entry(kind.value, name))
