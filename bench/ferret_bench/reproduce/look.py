"""Series and axes of the figures: marks with error bars for what was measured, lines for theory.

The data are rows: one row per point, columns named with their units. A point measured over several seeds has
``<name>_mean`` and ``<name>_std``, and ``<name>_theory`` if there is a formula. Marks and dashes tell series apart in
grey.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from ferret_cli.files import Row
from ferret_cli.plot_style import BLACK, BLUE, GREEN, ORANGE, PINK, RED, SKY

if TYPE_CHECKING:
    from matplotlib.typing import LineStyleType


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


class Style(NamedTuple):
    """A series; an empty dash leaves its marks unjoined."""

    colour: str
    mark: str
    dash: LineStyleType = "-"


FAMILY = {"T": Style(BLUE, "o"), "G": Style(RED, "s"), "R": Style(GREEN, "D"), "H": Style(PINK, "^")}
NAMES = {
    "T": "Ferret, T (truncated normal)",
    "G": "Ferret, G (signed buckets)",
    "R": "Ferret, R (dense signs)",
    "H": "Ferret, H (Hadamard)",
}
OTHERS = (Style(ORANGE, "v"), Style(SKY, "P"), Style(GREEN, "X"))
"""For methods other than the families, in their order."""


def panels(title: str, columns: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """A titled figure and its axes, side by side."""
    figure = Figure()
    figure.suptitle(title)
    grid = figure.subplots(1, columns, squeeze=False, **options)
    return figure, list(grid.flat)


def points(
    axes: Axes,
    rows: Sequence[Row],
    x: str,
    y: str,
    style: Style,
    label: str,
    *,
    shift: float = 1,
    hollow: bool = False,
) -> None:
    """Means with their standard deviations, joined by a line; ``shift`` moves them aside on a logarithmic axis."""
    axes.errorbar(
        [shift * value for value in values(rows, x)],
        values(rows, f"{y}_mean"),
        values(rows, f"{y}_std"),
        color=style.colour,
        marker=style.mark,
        linestyle=style.dash,
        markerfacecolor="white" if hollow else style.colour,
        markeredgecolor=style.colour if hollow else "white",
        label=label,
    )


def line(axes: Axes, rows: Sequence[Row], x: str, y: str, label: str | None = None, **options: Any) -> None:
    """A column that has no spread, dashed and under the marks like all theory, unless ``options`` say otherwise."""
    look: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 1.5, "zorder": 1} | options
    axes.plot(values(rows, x), values(rows, y), label=label, **look)


def legend(*together: Axes) -> None:
    """Draws one legend above the lines of overlaid axes, with the topmost."""
    entries = [entry for axes in together for entry in zip(*axes.get_legend_handles_labels(), strict=True)]
    together[-1].legend(*zip(*entries, strict=True), loc="upper center", ncols=len(together))


def ticks(axis: Axis, places: Sequence[float]) -> None:
    """Marks these values and no others, written out; for a logarithmic axis."""
    axis.set_major_locator(FixedLocator(places))
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_locator(NullLocator())


def plain(axis: Axis) -> None:
    """Values 1, 2 and 5 of each decade, written out; for a logarithmic axis of few decades."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
