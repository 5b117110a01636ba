"""A trial that has ended: its drawn values and its result."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ferret_cli.tune.search_space import Values


class Trial(NamedTuple):
    """Result of a trial. ``scores`` has the metric after the last round, by seed; ``curve`` the reports to the pruner,
    by round.

    A failed trial has a ``failure``, the problem that ended it; ``rounds`` is the total over all seeds.
    """

    number: int
    values: Values
    state: Literal["complete", "pruned", "failed"]
    scores: Sequence[float]
    curve: Mapping[int, float]
    rounds: int
    failure: dict[str, Any] | None

    @property
    def value(self) -> float | None:
        """The mean over the seeds; None unless all of them were run to the end."""
        return statistics.fmean(self.scores) if self.state == "complete" else None

    @property
    def reached(self) -> float | None:
        """The value; for an incomplete trial, the last report to the pruner, if any."""
        return self.value if self.value is not None else next(reversed(list(self.curve.values())), None)

    @property
    def error(self) -> float | None:
        return standard_error(self.scores) if self.state == "complete" else None


def standard_error(values: Sequence[float]) -> float | None:
    """The standard error of the mean: the sample's standard deviation over √n; None for fewer than two values."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def ranked(trials: Sequence[Trial], *, highest: bool) -> list[Trial]:
    """Returns completed trials from the best to the worst, then pruned, then failed ones."""
    completed = [(trial.value, trial) for trial in trials if trial.value is not None]
    best = sorted(completed, key=lambda pair: -pair[0] if highest else pair[0])
    return [trial for _, trial in best] + [
        trial for state in ("pruned", "failed") for trial in trials if trial.state == state
    ]


def best(trials: Sequence[Trial], *, highest: bool) -> Trial | None:
    """Returns the completed trial with the best mean; None if none completed."""
    first = next(iter(ranked(trials, highest=highest)), None)
    return first if first and first.state == "complete" else None
