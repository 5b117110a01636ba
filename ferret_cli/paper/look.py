"""How every figure looks: one size, one palette, marks with error bars for what was measured and lines for theory.

Colours are Okabe and Ito's, told apart by people with any colour vision; marks and dashes tell series apart in grey.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator
from PIL import Image

from ferret_cli.paper.table import Row, values

if TYPE_CHECKING:
    from matplotlib.typing import LineStyleType, RcKeyType

RULES: dict[RcKeyType, Any] = {
    "figure.figsize": (12.8, 7.2),
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "figure.titlesize": 19,
    "font.family": "DejaVu Sans",
    "font.size": 14,
    "axes.titlesize": 15,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 8,
    "errorbar.capsize": 4,
    "legend.fontsize": 13,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "none",
}


class Style(NamedTuple):
    """A series; an empty dash leaves its marks unjoined."""

    colour: str
    mark: str
    dash: LineStyleType = "-"


BLUE, RED, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#777777"
FAMILY = {"T": Style(BLUE, "o"), "G": Style(RED, "s"), "R": Style(GREEN, "D"), "H": Style(PINK, "^")}
NAMES = {
    "T": "Ferret, T (truncated normal)",
    "G": "Ferret, G (signed buckets)",
    "R": "Ferret, R (dense signs)",
    "H": "Ferret, H (Hadamard)",
}
OTHERS = (Style(ORANGE, "v"), Style(SKY, "P"), Style(GREEN, "X"))
"""For what is no family: the ways to compare with, in their order."""


def applied() -> AbstractContextManager[None]:
    """Figures made and saved inside have this look, and nothing outside has."""
    return mpl.rc_context(RULES)


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
    """One legend above the lines of axes that lie over each other, drawn by the topmost."""
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


def png(figure: Figure) -> bytes:
    """In 256 colours, which these figures do not use up: half the bytes of true colour."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(256)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
