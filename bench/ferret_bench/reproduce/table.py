"""The data of a figure as rows: one row per point, columns named with their units.

A point measured over several seeds has ``<name>_mean`` and ``<name>_std``, and ``<name>_theory`` if there is a formula.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from ferret_cli.files import Row


def spread(name: str, values: Sequence[float]) -> Row:
    """Mean and sample standard deviation as two columns, None where there are too few values for them."""
    return {
        f"{name}_mean": statistics.fmean(values) if values else None,
        f"{name}_std": statistics.stdev(values) if len(values) > 1 else None,
    }


def only(rows: Iterable[Row], **wanted: str | float) -> list[Row]:
    """The rows with these values in these columns."""
    return [row for row in rows if all(row[column] == value for column, value in wanted.items())]


def values(rows: Iterable[Row], column: str) -> list[float]:
    """One column as numbers; NaN where it does not apply."""
    return [math.nan if (value := row[column]) is None else float(value) for row in rows]


def slope(rows: Sequence[Row], x: str, y: str) -> float:
    """Exponent p of the power law y ∝ xᵖ that fits the rows best."""
    logarithms = ([math.log(value) for value in values(rows, column)] for column in (x, y))
    return statistics.linear_regression(*logarithms).slope
