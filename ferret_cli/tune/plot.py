"""Plot of a study: the trials in their order, and the metric against each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator

from ferret_cli.plot_style import BLACK, BLUE, GREY, ORANGE, RED
from ferret_cli.tune.plan import Plan
from ferret_cli.tune.search_space import Choice, Dimension, dimensions, short_names
from ferret_cli.tune.trial import Trial, best
from ferret_core.protocol.metrics import METRICS

ACROSS = 3
WIDTH, HEIGHT, AROUND = 4.8, 3.4, 1.2
"""Inches: a panel; title and legend together."""
MOST_DIMENSIONS = 11
LONGEST_LABEL = 20
BESIDE = 0.18
"""Spread of one label's trials, as a share of the distance to the next label."""
MARKS: dict[str, dict[str, Any]] = {
    "complete": {"marker": "o", "color": BLUE, "markeredgecolor": "none"},
    "pruned": {"marker": "x", "color": GREY},
    "failed": {"marker": "v", "color": RED, "markeredgecolor": "none"},
    "best": {"marker": "*", "color": ORANGE, "markersize": 16, "markeredgecolor": BLACK, "markeredgewidth": 0.6},
}


def draw(plan: Plan, trials: Sequence[Trial]) -> Figure:
    """Draws one panel over the trials' numbers, and one for each of the first dimensions.

    Pruned trials are drawn at their end, failed ones and outliers at the edge.
    """
    found = dimensions(plan.space)
    shown = list(zip(found.items(), short_names(found), strict=True))[:MOST_DIMENSIONS]
    down = -(-(1 + len(shown)) // ACROSS)
    figure = Figure(figsize=(ACROSS * WIDTH, down * HEIGHT + AROUND))
    figure.suptitle(_plain(f"{plan.name}: {len(trials)} trials"))
    panels = list(figure.subplots(down, ACROSS, sharey=True, squeeze=False).flat)
    drawing = _Drawing(plan, trials)
    drawing.history(panels[0])
    for axes, ((name, dimension), label) in zip(panels[1:], shown, strict=False):
        drawing.against(axes, name, dimension, label)
    for place, axes in enumerate(panels):
        axes.set_visible(place <= len(shown))
        if place % ACROSS == 0:
            axes.set_ylabel(METRICS[plan.settings.metric].label.lower())
    figure.legend(handles=drawing.legend(), loc="outside lower center", ncols=5)
    return figure


class _Drawing:
    def __init__(self, plan: Plan, trials: Sequence[Trial]) -> None:
        self._trials = trials
        self._highest = plan.settings.highest
        self._best = best(trials, highest=self._highest)
        self._limits = _limits([trial.reached for trial in trials if trial.reached is not None])
        self._worst = self._limits[0 if self._highest else 1]

    def history(self, axes: Axes) -> None:
        self._marks(axes, [(trial, trial.number) for trial in self._trials])
        completed = [(trial.number, trial.value) for trial in self._trials if trial.value is not None]
        if completed:
            numbers, values = zip(*completed, strict=True)
            so_far = list(accumulate(values, max if self._highest else min))
            steps = [*numbers, len(self._trials)], [*so_far, so_far[-1]]
            axes.plot(*steps, color=BLACK, linewidth=1.2, drawstyle="steps-post", zorder=1)
        axes.set_xlabel("trial")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))

    def against(self, axes: Axes, name: str, dimension: Dimension, label: str) -> None:
        """Leaves out trials without the dimension, which belongs to an option of a choice."""
        having = [trial for trial in self._trials if name in trial.values]
        if isinstance(dimension, Choice):
            labels = list(dimension.options)
            places = {label: place for place, label in enumerate(labels)}
            aside = np.linspace(-BESIDE, BESIDE, max(len(self._trials), 2))
            self._marks(axes, [(trial, places[trial.values[name]] + aside[trial.number - 1]) for trial in having])
            axes.set_xlim(-0.5, len(labels) - 0.5)
            axes.xaxis.set_major_locator(FixedLocator(range(len(labels))))
            axes.xaxis.set_major_formatter(FixedFormatter([_plain(_cut(label)) for label in labels]))
            axes.grid(axis="x", visible=False)
        else:
            self._marks(axes, [(trial, trial.values[name]) for trial in having])
            if dimension.log:
                axes.set_xscale("log")
                axes.set_xlim(dimension.low / 1.2, dimension.high * 1.2)
        axes.set_xlabel(_plain(label))

    def legend(self) -> list[Line2D]:
        states = {trial.state for trial in self._trials}
        marks = [Line2D([], [], linestyle="", label=state, **MARKS[state]) for state in MARKS if state in states]
        if self._best is None:
            return marks
        line = Line2D([], [], color=BLACK, linewidth=1.2, label="best so far")
        return [*marks, Line2D([], [], linestyle="", label="best", **MARKS["best"]), line]

    def _marks(self, axes: Axes, places: Sequence[tuple[Trial, float]]) -> None:
        axes.set_ylim(*self._limits)
        for trial, x in places:
            look = MARKS["best" if trial is self._best else trial.state]
            height = self._height(trial)
            # Marks may exceed the edge; a bar that did would leave the panel no room.
            axes.errorbar(x, height, trial.error, fmt="none", ecolor=look["color"], zorder=2)
            axes.plot(x, height, linestyle="", clip_on=False, zorder=3, **look)

    def _height(self, trial: Trial) -> float:
        reached = None if trial.state == "failed" else trial.reached
        return self._worst if reached is None else float(np.clip(reached, *self._limits))


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Returns Tukey's fences, with a margin: one outlier must not squeeze the other trials."""
    if not values:
        return 0.0, 1.0
    lower, upper = np.quantile(values, (0.25, 0.75))
    fence = 1.5 * (upper - lower)
    inside = [value for value in values if lower - fence <= value <= upper + fence]
    margin = 0.08 * (max(inside) - min(inside)) or 0.05 * abs(inside[0]) or 1.0
    return min(inside) - margin, max(inside) + margin


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def _plain(text: str) -> str:
    """Escapes dollar signs, between which Matplotlib reads mathematics."""
    return text.replace("$", r"\$")
