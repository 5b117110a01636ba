"""The list of a server's experiments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypedDict

from ferret_core.protocol.resources.experiments import ListedExperiment
from ferret_sdk.http.transport import Transport, list_items
from ferret_sdk.service import notebook_html

PATH = "/experiments"
SHOWN = 20
"""Rows in a notebook."""


class ExperimentFilters(TypedDict, total=False):
    """Filters and order. The default is all that are not archived, newest first."""

    state: Sequence[str]
    """Allowed states."""
    algorithm: str | None
    dataset: str | None
    name: str | None
    """A part of the name."""
    archived: bool
    """Only archived ones."""
    project: str | None
    tags: Sequence[str]
    """Required tags."""
    created_after: datetime | None
    created_before: datetime | None
    sort: str | None
    """A column such as ``name``, ``rounds``, ``bytes_up``, or a metric; a leading minus means descending."""


def parameters(wanted: ExperimentFilters) -> dict[str, Any]:
    """Returns the list's query parameters."""
    query: dict[str, Any] = {**wanted, "archived": wanted.get("archived") or None}
    query["tag"] = list(query.pop("tags", ()))
    for name in ("created_after", "created_before"):
        query[name] = query[name].isoformat() if query.get(name) else None
    return query


class Experiments:
    """Experiments, fetched page by page on demand, and again for each loop."""

    def __init__(self, transport: Transport, query: dict[str, Any]) -> None:
        self._transport, self._query = transport, query

    def __iter__(self) -> Iterator[ListedExperiment]:
        return list_items(self._transport, PATH, ListedExperiment, **self._query)

    def __repr__(self) -> str:
        asked = ", ".join(f"{name}={value!r}" for name, value in self._query.items() if value not in (None, []))
        return f"Experiments({asked})"

    def _repr_html_(self) -> str:
        found = list(islice(self, SHOWN + 1))
        return notebook_html.of_list(found[:SHOWN], self._transport.url, more=len(found) > SHOWN)
