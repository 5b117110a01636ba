"""A study's panels as one picture: a quantity against the round, or against another, every row a series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ferret_bench.measure.statistics import Interval
from ferret_bench.reproduce.look import Style
from ferret_bench.reproduce.reruns.grid import Column
from ferret_bench.reproduce.reruns.quantity import Quantity
from ferret_bench.reproduce.reruns.results import Results, Spread
from ferret_bench.reproduce.reruns.settings import OURS, Row
from ferret_bench.reproduce.reruns.studies import Panel, Study
from ferret_bench.reproduce.reruns.tables import DENSE
from ferret_cli.plot_style import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY

COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, GREY)
MARKS = "osD^vPX*hp<>d"
"""Marks. Their number and the colours' are coprime: no two of 91 series look the same."""
DASHES = ("-", "--", ":")
WIDTH, HEIGHT, TITLE, LEGEND_ROW = 6.4, 4.2, 0.8, 0.3
"""Inches: a panel, the title above all, a row of the legend below."""
DOTS_PER_INCH = 150
BAND = 0.15


class Drawing(NamedTuple):
    """One panel of one column, not yet drawn. Errors are halves of 95 % ``intervals``, or else standard deviations, as
    the study's page says.
    """

    column: Column
    panel: Panel
    intervals: bool


class Point(NamedTuple):
    """A mark with the errors of its two values, 0 if unknown."""

    x: float
    y: float
    x_error: float
    y_error: float


class Series(NamedTuple):
    """Rows that share a colour: one row over the rounds, or variants of one that form a line."""

    label: str
    rows: list[Row]
    style: Style


def draw(study: Study, results: Results) -> Figure | None:
    """All panels under one title with one legend; None if all are empty. A line has the panels of a dataset and model,
    or two datasets with one panel each.
    """
    found = _drawings(study, results)
    if not found:
        return None
    series = [each for each in _series(results, found[0].panel) if _is_drawn(results, each, found)]
    lines = _lines(found)
    across = max(map(len, lines))
    height = HEIGHT * len(lines) + TITLE + LEGEND_ROW * -(-len(series) // (2 * across))
    figure = Figure(figsize=(WIDTH * across, height), dpi=DOTS_PER_INCH)
    figure.suptitle(study.title)
    grid = figure.subplots(len(lines), across, squeeze=False)
    for axes, drawings in zip(grid, lines, strict=True):
        for place, drawing in zip(axes, drawings, strict=False):
            _draw(place, results, drawing, series, gain=study.reference == DENSE)
        for empty in axes[len(drawings) :]:
            empty.set_visible(False)
    _legend(figure, series, columns=2 * across)
    return figure


def _lines(found: Sequence[Drawing]) -> list[list[Drawing]]:
    columns = list(dict.fromkeys(drawing.column for drawing in found))
    if len(columns) == len(found):
        return [list(found[start : start + 2]) for start in range(0, len(found), 2)]
    return [[drawing for drawing in found if drawing.column == column] for column in columns]


def _drawings(study: Study, results: Results) -> list[Drawing]:
    """Returns the panels with data, column by column, without those in which all rows share one x."""
    by_intervals = study.reference is not None
    found = [Drawing(column, panel, by_intervals) for column in results.grid.columns for panel in study.panels]
    return [drawing for drawing in found if _tells(results, drawing)]


def _tells(results: Results, drawing: Drawing) -> bool:
    rows = [found for row in results.grid.rows if (found := _points(results, row, drawing))]
    places = {point.x for points in rows for point in points}
    return len(places) > 1 or len(rows) == 1


def _is_drawn(results: Results, series: Series, drawings: Sequence[Drawing]) -> bool:
    """Returns True if the series appears in a panel. A series with only failed runs does not."""
    return any(_points(results, row, drawing) for row in series.rows for drawing in drawings)


def _series(results: Results, panel: Panel) -> list[Series]:
    rows = results.grid.rows
    if panel.x is None or not panel.joined:
        styles = [_style(number) if panel.x is None else _marked(number) for number in range(len(rows))]
        return [Series(row.label, [row], style) for row, style in zip(rows, styles, strict=True)]
    labels = list(dict.fromkeys(row.series for row in rows))
    lines = [(label, [row for row in rows if row.series == label]) for label in labels]
    return [Series(label, of, _of_line(number, of)) for number, (label, of) in enumerate(lines)]


def _of_line(number: int, rows: Sequence[Row]) -> Style:
    """Returns the style: variants are joined, and our rows are highlighted among their rivals."""
    style = _style(number)._replace(dash="-" if len(rows) > 1 else "")
    return style._replace(colour=BLACK) if rows[0].group == OURS else style


def _style(number: int) -> Style:
    """Returns the style of the series with this number in every panel: dashes change when colours are used up."""
    turn, place = divmod(number, len(COLOURS))
    return Style(COLOURS[place], MARKS[number % len(MARKS)], DASHES[turn % len(DASHES)])


def _marked(number: int) -> Style:
    return _style(number)._replace(dash="")


def _draw(axes: Axes, results: Results, drawing: Drawing, series: Sequence[Series], *, gain: bool) -> None:
    """Draws the series and, to show their ``gain``, a line at the base model's value."""
    panel = drawing.panel
    for _, rows, style in series:
        if points := [point for row in rows for point in _points(results, row, drawing)]:
            (_marks if panel.x else _curve)(axes, sorted(points), style)
    several = len({column.model for column in results.grid.columns}) > 1
    axes.set_title(f"{panel.title}, {drawing.column.title}{f' · {drawing.column.model}' if several else ''}")
    axes.set(xlabel=panel.x.label if panel.x else "round", ylabel=panel.y.label)
    if panel.x is None:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return
    for row in results.grid.rows:
        if gain and row.name == DENSE and (base := results.base(row, drawing.column, panel.y)) is not None:
            axes.axhline(base, color=GREY, linestyle=":", linewidth=1.2)
            axes.annotate("base model", (0.6, base), xycoords=("axes fraction", "data"), ha="center", va="top")
    if panel.logarithmic:
        _logarithmic(axes)
    else:
        axes.set_xlim(0, 1.1 * axes.get_xlim()[1])
    axes.xaxis.set_major_formatter(_formatter(panel.x))  # last, because a new scale replaces it


def _logarithmic(axes: Axes) -> None:
    """Labels at powers of ten; over less than two of them, at twice and five times each too."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    if high < 1.5 * low:  # one size, with the same label at every mark
        low, high = axes.set_xlim(low / 5, 5 * high)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _formatter(quantity: Quantity) -> FuncFormatter:
    def show(value: float, place: int) -> str:
        return quantity.show(value).replace(".0 ", " ")

    return FuncFormatter(show)


def _curve(axes: Axes, points: Sequence[Point], style: Style) -> None:
    """A line with a band of the errors to either side."""
    x, y, _, error = (np.array(values) for values in zip(*points, strict=True))
    axes.plot(x, y, color=style.colour, linestyle=style.dash, marker=style.mark, markersize=5, markeredgecolor="none")
    axes.fill_between(x, y - error, y + error, color=style.colour, alpha=BAND, linewidth=0)


def _marks(axes: Axes, points: Sequence[Point], style: Style) -> None:
    """Marks with bars of the errors, joined by a thin line."""
    x, y, x_error, y_error = (np.array(values) for values in zip(*points, strict=True))
    axes.errorbar(
        *(x, y, y_error, x_error),
        color=style.colour,
        linestyle=style.dash,
        linewidth=1.2,
        marker=style.mark,
        markeredgecolor="none",
        capsize=3,
    )


def _points(results: Results, row: Row, drawing: Drawing) -> list[Point]:
    column, panel, intervals = drawing
    if panel.x is None:
        curve = results.curve(row, column, panel.y)
        return [Point(number, mean.mean, 0, _error(mean, half, intervals)) for number, mean, half in curve]
    x, y = results.value(row, column, panel.x), results.value(row, column, panel.y)
    if not x or not y:
        return []
    of_x, of_y = (results.interval(row, column, quantity) for quantity in (panel.x, panel.y))
    return [Point(x.mean, y.mean, _error(x, of_x, intervals), _error(y, of_y, intervals))]


def _error(spread: Spread, found: Interval | None, intervals: bool) -> float:
    """Returns the length of a bar to one side."""
    return (found.half if found else 0) if intervals else spread.std or 0


def _legend(figure: Figure, series: Sequence[Series], columns: int) -> None:
    handles = [
        Line2D([], [], color=style.colour, marker=style.mark, markeredgecolor="none", linestyle=style.dash, label=label)
        for label, _, style in series
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)
