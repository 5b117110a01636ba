"""Bounds of measured ratios."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ferret_bench.base import Table, shown

COMPARISONS: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le, "<": operator.lt}

HOLDS = {True: "yes", False: "no", None: None}


class Bound(NamedTuple):
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.sign} {self.limit:g}"


def against(bounds: Mapping[str, Bound], ratios: Mapping[str, float | None]) -> dict[str, dict[str, Any]]:
    """Returns by key the ratio, its bound, and whether it holds; None for a ratio that could not be measured."""
    return {
        key: {"value": ratios[key], "bound": str(bound), "holds": _holds(ratios[key], bound)}
        for key, bound in bounds.items()
    }


def table(document: Mapping[str, Any]) -> Table:
    """The ``bounds`` of a document; the title warns where only small sizes were measured."""
    title = "bounds, measured at small sizes, for which they are not meant" if document["asked"]["quick"] else "bounds"
    rows = [
        [key, shown(found["value"]), found["bound"], HOLDS[found["holds"]]] for key, found in document["bounds"].items()
    ]
    return Table(title, ["measured", "value", "bound", "holds"], rows)


def _holds(value: float | None, bound: Bound) -> bool | None:
    return None if value is None else COMPARISONS[bound.sign](value, bound.limit)
