"""Plot of a partition: bars of the clients' examples, by label.

A few labels are stacked in colours. For many labels a matrix is drawn below the bars, with a dot for each client and
label, its area in proportion to the examples: three clients fill it as well as a thousand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator

from ferret_cli.data.partition_summary import Holding
from ferret_cli.plot_style import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY

YELLOW = "#F0E442"
COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, YELLOW, GREY, BLACK)
MOST_BARS = 60
"""Number of clients drawn as separate bars; more are drawn as one outline."""
MOST_NAMES = 36
LONGEST_NAME = 40


def draw(held: Sequence[Holding], title: str) -> Figure:
    """Clients from left to right in their order, labels by name; at least one client."""
    labels = sorted({label for holding in held for label in holding.labels})
    figure = Figure()
    figure.suptitle(title)
    if len(labels) <= len(COLOURS):
        bars = figure.subplots()
        _stack(bars, held, labels)
        if labels != [""]:
            figure.legend(loc="outside right upper", reverse=True)
    else:
        bars, matrix = figure.subplots(2, 1, sharex=True, height_ratios=(1, 3))
        _bars(bars, np.array([holding.examples for holding in held]), np.zeros(len(held)), BLUE)
        _dots(matrix, held, labels, figure.get_size_inches().tolist())
    bars.set_ylabel("examples")
    bars.set_ylim(0, 1.05 * max(holding.examples for holding in held))
    bars.grid(axis="x", visible=False)
    _clients(figure.axes[-1], len(held))
    return figure


def _stack(axes: Axes, held: Sequence[Holding], labels: Sequence[str]) -> None:
    below = np.zeros(len(held))
    for label, colour in zip(labels, COLOURS, strict=False):
        heights = np.array([holding.labels.get(label, 0) for holding in held])
        _bars(axes, heights, below, colour, _short(label) or "no label")
        below += heights


def _bars(axes: Axes, heights: np.ndarray, below: np.ndarray, colour: str, label: str | None = None) -> None:
    places = np.arange(1, len(heights) + 1)
    if len(heights) <= MOST_BARS:
        axes.bar(places, heights, bottom=below, color=colour, label=label, zorder=2)
    else:
        edges = np.append(places - 0.5, places[-1] + 0.5)
        axes.stairs(below + heights, edges, baseline=below, fill=True, color=colour, label=label, zorder=2)


def _dots(axes: Axes, held: Sequence[Holding], labels: Sequence[str], inches: Sequence[float]) -> None:
    row = {label: number for number, label in enumerate(labels, start=1)}
    cells = [(x, row[label], n) for x, holding in enumerate(held, start=1) for label, n in holding.labels.items()]
    x, y, examples = np.array(cells).T
    # Share of the figure that the matrix fills; 72 points are an inch.
    cell = 72 * min(0.8 * inches[0] / len(held), 0.6 * inches[1] / len(labels))
    areas = min(max(cell, 3.0), 30.0) ** 2 * examples / examples.max()
    axes.scatter(x, y, s=np.maximum(areas, 2.0), color=BLUE, linewidths=0, zorder=2)
    axes.set_ylim(len(labels) + 0.5, 0.5)
    if len(labels) <= MOST_NAMES:
        axes.yaxis.set_major_locator(FixedLocator(range(1, len(labels) + 1)))
        axes.yaxis.set_major_formatter(FixedFormatter([_short(label) or "no label" for label in labels]))
        axes.tick_params(axis="y", labelsize=min(14, 380 / len(labels)))
    else:
        axes.set_ylabel(f"{len(labels):,} labels, by name")
        _whole(axes.yaxis)
    axes.set_title(f"area of a dot: examples of the label; the largest are {examples.max():,}", fontsize=12, loc="left")


def _clients(axes: Axes, count: int) -> None:
    axes.set_xlabel("client")
    axes.set_xlim(0.5, count + 0.5)
    _whole(axes.xaxis)


def _whole(axis: Axis) -> None:
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _short(label: str) -> str:
    half = LONGEST_NAME // 2
    return label if len(label) <= LONGEST_NAME else f"{label[:half]}…{label[1 - half :]}"
