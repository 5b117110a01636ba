"""The experiments that a server lists."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from ferret_sdk import html
from ferret_sdk.pages import items
from ferret_sdk.schemas import ListedExperiment
from ferret_sdk.transport import Transport

PATH = "/experiments"
SHOWN = 20
"""Rows in a notebook."""


class Experiments:
    """Experiments, fetched page by page as they are asked for, and anew for each loop over them."""

    def __init__(self, transport: Transport, query: dict[str, Any]) -> None:
        self._transport, self._query = transport, query

    def __iter__(self) -> Iterator[ListedExperiment]:
        return items(self._transport, PATH, ListedExperiment, **self._query)

    def __repr__(self) -> str:
        asked = ", ".join(f"{name}={value!r}" for name, value in self._query.items() if value not in (None, []))
        return f"Experiments({asked})"

    def _repr_html_(self) -> str:
        found = list(islice(self, SHOWN + 1))
        return html.of_list(found[:SHOWN], self._transport.url, more=len(found) > SHOWN)
