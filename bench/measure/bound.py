"""Bounds: what a measured ratio must reach."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

COMPARISONS: dict[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le, "<": operator.lt}


class Bound(NamedTuple):
    sign: str
    limit: float

    def __str__(self) -> str:
        return f"{self.sign} {self.limit:g}"


def against(bounds: Mapping[str, Bound], ratios: Mapping[str, float | None]) -> dict[str, dict[str, Any]]:
    """By key: the ratio, its bound, and whether it holds; None for a ratio that could not be measured."""
    return {
        key: {"value": ratios[key], "bound": str(bound), "holds": _holds(ratios[key], bound)}
        for key, bound in bounds.items()
    }


def _holds(value: float | None, bound: Bound) -> bool | None:
    return None if value is None else COMPARISONS[bound.sign](value, bound.limit)
