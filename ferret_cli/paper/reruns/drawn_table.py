"""A study's sheets as one picture: a table as it would be printed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ferret_cli.paper.reruns.sheet import Entry, Head, Line, Sheet
from ferret_cli.paper.reruns.theme import Theme

FIRST, OTHERS = 2.3, 1.75
ROW, MARGIN = 0.36, 0.35
GAP = 0.18
"""Inches: the columns, the rows, the margin, and what lies between two groups of columns."""


def picture(title: str, sheets: Sequence[Sheet], theme: Theme) -> Figure:
    """The sheets one under the other."""
    width = 2 * MARGIN + max(_width(sheet) for sheet in sheets)
    height = 2 * MARGIN + ROW * (1.5 + sum(len(sheet.lines) + 4.5 for sheet in sheets))
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    axes.text(MARGIN, MARGIN + ROW / 2, title, size=19, weight="bold", va="center")
    top = MARGIN + ROW * 2
    for sheet in sheets:
        _sheet(axes, sheet, top, theme)
        top += ROW * (len(sheet.lines) + 4.5)
    return figure


def _width(sheet: Sheet) -> float:
    return _rights(sheet.heads)[-1]


def _rights(heads: Sequence[Head]) -> list[float]:
    """Where each column ends, counted from the margin; a little air before each group."""
    rights, at, before = list[float](), FIRST, None
    for head in heads:
        at += OTHERS + (GAP if (head.group, head.ours) != before else 0)
        before = (head.group, head.ours)
        rights.append(at)
    return rights or [FIRST]


def _sheet(axes: Axes, sheet: Sheet, top: float, theme: Theme) -> None:
    rights = _rights(sheet.heads)
    left, end = MARGIN, MARGIN + rights[-1]
    axes.text(left, top + ROW / 2, sheet.title, size=15, weight="bold", va="center", color=theme.accent)
    places = zip(sheet.heads, rights, strict=False)
    for (group, ours), heads in groupby(places, key=lambda place: (place[0].group, place[0].ours)):
        spans = [right for _, right in heads]
        begin, stop = left + spans[0] - OTHERS + GAP, left + spans[-1]
        label = f"{group}, {'here' if ours else 'paper'}"
        axes.text(begin, top + ROW * 1.4, label, va="center", size=12.5, color=theme.muted)
        axes.hlines(top + ROW * 1.85, begin, stop, color=theme.muted, linewidth=0.7)
    for head, right in zip(sheet.heads, rights, strict=False):
        axes.text(left + right, top + ROW * 2.3, head.label, ha="right", va="center", size=11.5, color=theme.muted)
    axes.hlines(top + ROW * 2.8, left, end, color=theme.text, linewidth=1)
    for place, line in enumerate(sheet.lines):
        _line(axes, line, top + ROW * (2.8 + place), rights, theme)
    axes.hlines(top + ROW * (2.8 + len(sheet.lines)), left, end, color=theme.text, linewidth=1)


def _line(axes: Axes, line: Line, top: float, rights: Sequence[float], theme: Theme) -> None:
    middle = top + ROW / 2
    if line.apart:
        axes.hlines(top, MARGIN, MARGIN + rights[-1], color=theme.line, linewidth=1)
    axes.text(MARGIN, middle, line.label, va="center", size=13)
    for entry, right in zip(line.entries, rights, strict=False):
        _entry(axes, entry, MARGIN + right, middle, theme)


def _entry(axes: Axes, entry: Entry, right: float, middle: float, theme: Theme) -> None:
    colour = {"failed": theme.danger, "empty": theme.muted}.get(entry.mark, theme.text)
    weight = "bold" if entry.mark == "best" else "normal"
    text = axes.text(right, middle, _text(entry), ha="right", va="center", size=13, color=colour, weight=weight)
    if entry.mark == "second":
        box = text.get_window_extent().transformed(axes.transData.inverted())
        axes.hlines(middle + ROW * 0.3, box.x0, box.x1, color=colour, linewidth=0.9)


def _text(entry: Entry) -> str:
    return f"{entry.mean} ± {entry.std}" if entry.std else entry.mean
