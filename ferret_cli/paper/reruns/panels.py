"""A study's panels as pictures: a quantity against the round, or against another, every row a series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ferret_cli.paper.look import Style
from ferret_cli.paper.reruns.grid import Column
from ferret_cli.paper.reruns.quantity import Quantity
from ferret_cli.paper.reruns.results import Results
from ferret_cli.paper.reruns.settings import Row
from ferret_cli.paper.reruns.study import Panel, Study
from ferret_cli.paper.reruns.theme import Theme

WIDTH, HEIGHT, LEGEND_ROW = 6.4, 4.2, 0.3
LONG = 13
"""Characters of a label of which only two stand beside each other."""
BAND = 0.15


class Drawing(NamedTuple):
    """One panel of one column, not yet drawn."""

    column: Column
    panel: Panel

    @property
    def title(self) -> str:
        return f"{self.panel.title}: {self.column.title}, {self.column.model}"


class Point(NamedTuple):
    """A mark with the standard deviations of its two values, 0 where there are none."""

    x: float
    y: float
    x_std: float
    y_std: float


class Series(NamedTuple):
    """Rows that share a colour: one row over the rounds, or all variants of one against another quantity."""

    label: str
    rows: list[Row]
    style: Style


def drawings(study: Study, results: Results) -> list[Drawing]:
    """The panels in which there is something to show, column by column."""
    found = [Drawing(column, panel) for column in results.grid.columns for panel in study.panels]
    return [one for one in found if any(_points(results, row, one) for row in results.grid.rows)]


def single(results: Results, drawing: Drawing, theme: Theme) -> Figure:
    """One panel with its legend under it, no wider than it is shown."""
    series = _series(results, drawing.panel, theme)
    columns = 2 if max(len(one.label) for one in series) > LONG else 3
    figure = Figure(figsize=(WIDTH, HEIGHT + LEGEND_ROW * -(-len(series) // columns)))
    _draw(figure.subplots(), results, drawing, series)
    _legend(figure, series, columns)
    return figure


def together(title: str, results: Results, found: Sequence[Drawing], theme: Theme) -> Figure:
    """All panels under one title, a row of them per dataset and model, with one legend."""
    series = _series(results, found[0].panel, theme)
    columns = [one.column for one in found]
    across = max(columns.count(column) for column in columns)
    down = len(dict.fromkeys(columns))
    figure = Figure(figsize=(WIDTH * across, HEIGHT * down + 0.8 + LEGEND_ROW * -(-len(series) // (2 * across))))
    figure.suptitle(title, weight="bold", x=0.01, ha="left")
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat:
        axes.set_visible(False)
    for place, column in enumerate(dict.fromkeys(columns)):
        for axes, one in zip(grid[place], [one for one in found if one.column == column], strict=False):
            axes.set_visible(True)
            _draw(axes, results, one, series)
    _legend(figure, series, columns=2 * across)
    return figure


def _series(results: Results, panel: Panel, theme: Theme) -> list[Series]:
    rows = results.grid.rows
    if panel.x is None:
        return [Series(row.label, [row], theme.style(number)) for number, row in enumerate(rows)]
    called = {row.family: row.called for row in rows}
    families = [(label, [row for row in rows if row.family == family]) for family, label in called.items()]
    return [
        Series(label, of, theme.style(number)._replace(dash="-" if len(of) > 1 else ""))
        for number, (label, of) in enumerate(families)
    ]


def _draw(axes: Axes, results: Results, drawing: Drawing, series: Sequence[Series]) -> None:
    panel = drawing.panel
    for one in series:
        if points := [point for row in one.rows for point in _points(results, row, drawing)]:
            (_marks if panel.x else _curve)(axes, sorted(points), one.style)
    several = len({column.model for column in results.grid.columns}) > 1
    axes.set_title(f"{panel.title}, {drawing.column.title}{f' · {drawing.column.model}' if several else ''}")
    axes.set(xlabel=panel.x.label if panel.x else "round", ylabel=panel.y.label)
    if panel.logarithmic:
        axes.set_xscale("log")
    if panel.x is None:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        axes.xaxis.set_major_formatter(_formatter(panel.x))


def _formatter(quantity: Quantity) -> FuncFormatter:
    def show(value: float, place: int) -> str:
        return quantity.show(value).replace(".0 ", " ")

    return FuncFormatter(show)


def _curve(axes: Axes, points: Sequence[Point], style: Style) -> None:
    """A line with a band of one standard deviation to either side."""
    x, y, _, std = (np.array(values) for values in zip(*points, strict=True))
    axes.plot(x, y, color=style.colour, linestyle=style.dash, marker=style.mark, markersize=5, markeredgecolor="none")
    axes.fill_between(x, y - std, y + std, color=style.colour, alpha=BAND, linewidth=0)


def _marks(axes: Axes, points: Sequence[Point], style: Style) -> None:
    """Marks with bars of one standard deviation, joined by a thin line."""
    x, y, x_std, y_std = (np.array(values) for values in zip(*points, strict=True))
    axes.errorbar(
        *(x, y, y_std, x_std),
        color=style.colour,
        linestyle=style.dash,
        linewidth=1.2,
        marker=style.mark,
        markeredgecolor="none",
        capsize=3,
    )


def _points(results: Results, row: Row, drawing: Drawing) -> list[Point]:
    column, panel = drawing
    if panel.x is None:
        curve = results.curve(row, column, panel.y)
        return [Point(done, value.mean, 0, value.std or 0) for done, value in curve]
    x, y = results.value(row, column, panel.x), results.value(row, column, panel.y)
    return [Point(x.mean, y.mean, x.std or 0, y.std or 0)] if x and y else []


def _legend(figure: Figure, series: Sequence[Series], columns: int) -> None:
    handles = [
        Line2D([], [], color=style.colour, marker=style.mark, markeredgecolor="none", linestyle=style.dash, label=label)
        for label, _, style in series
    ]
    figure.legend(handles=handles, loc="outside lower left", ncols=columns)
