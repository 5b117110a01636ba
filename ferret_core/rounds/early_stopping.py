"""The best round, early stopping, and results worse than they need be: pure functions of an experiment's metrics.

Their input is the measured evaluations, ``{round: value}`` with 0 for the base model, so anyone with the metrics
computes the same end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import quantity
from ferret_core.protocol.metrics import METRICS
from ferret_core.protocol.spec import ExperimentSpec, StoppingSpec

Values = Mapping[int, float]


class BestRound(NamedTuple):
    """The round with the best value of a metric."""

    metric: str
    round: int
    value: float


class EarlyStop(NamedTuple):
    """Early end of an experiment after ``round``; ``detail`` is the reason, for people."""

    round: int
    best: BestRound
    detail: str


class Decline(NamedTuple):
    """The last evaluated ``round`` is worse than the base model or the ``best`` round; ``detail`` is for people."""

    round: int
    best: BestRound
    detail: str


def ranked(stopping: StoppingSpec, values: Values) -> list[BestRound]:
    """Returns the rounds from best to worst, of equal ones the first in front; rounds without a finite value are
    omitted."""
    sign = _sign(stopping)
    measured = [number for number in sorted(values) if math.isfinite(values[number])]
    order = sorted(measured, key=lambda number: sign * values[number])
    return [BestRound(stopping.metric, number, values[number]) for number in order]


def stop(stopping: StoppingSpec, values: Values, since: int = 0) -> EarlyStop | None:
    """Returns the early end after the last round of ``values``, or None if the experiment continues.

    It ends after ``patience`` evaluations in a row without improvement. An improvement is better than the previous
    improvement by more than ``min_delta``; a value that is not finite never is one. Rounds up to ``since`` do not count
    towards patience: the experiment was extended after them.
    """
    if stopping.patience is None:
        return None
    sign, reference, waited = _sign(stopping), math.inf, 0
    for number in sorted(values):
        value = sign * values[number]
        if math.isfinite(value) and (reference == math.inf or value < reference - stopping.min_delta):
            reference, waited = value, 0
        elif number > since:
            waited += 1
    best = ranked(stopping, values)[:1]
    return _stop(stopping, max(values), best[0]) if best and waited >= stopping.patience else None


def decline(stopping: StoppingSpec, values: Values) -> Decline | None:
    """Returns the decline of the last evaluated round, or None.

    Worse is any difference to the base model, and more than ``min_delta`` to the best round.
    """
    best = next(iter(ranked(stopping, values)), None)
    if best is None or best.round == (last := max(values)):
        return None
    sign, value, base = _sign(stopping), values[last], values.get(0, math.nan)
    against_base = not sign * value <= sign * base and math.isfinite(base)
    if not against_base and sign * (value - best.value) <= stopping.min_delta:
        return None
    shown = {number: quantity(stopping.metric, values[number]) for number in (last, best.round)}
    found = f"{METRICS[stopping.metric].label} is {shown[last]} after round {last}, worse than"
    if not against_base:
        return Decline(last, best, f"{found} {shown[best.round]} after round {best.round}, the best")
    better = f"{shown[best.round]} after round {best.round} is the best" if best.round else "no round is better than it"
    return Decline(last, best, f"{found} the base model with {quantity(stopping.metric, base)}; {better}")


def require_measured(spec: ExperimentSpec, metrics: Mapping[str, float]) -> None:
    """Raises ``spec.invalid`` if the metric for early stopping was not measured for the base model."""
    stopping = spec.stopping
    if stopping.patience is not None and stopping.metric not in metrics:
        message = f"was not measured for the base model, so nothing could improve; use one of {_listed(metrics)}"
        raise FerretError.of_field("spec.invalid", "stopping.metric", stopping.metric, message)


def _listed(metrics: Mapping[str, float]) -> str:
    return ", ".join(name for name in metrics if name in METRICS and METRICS[name].source == "evaluation")


def _sign(stopping: StoppingSpec) -> int:
    return -1 if METRICS[stopping.metric].better == "high" else 1


def _stop(stopping: StoppingSpec, number: int, best: BestRound) -> EarlyStop:
    rounds = number - best.round
    by = f" by more than {stopping.min_delta:g}" if stopping.min_delta else ""
    since = f"for {rounds} round{'s' if rounds > 1 else ''}" if rounds else f"for {stopping.patience} evaluations"
    detail = f"stopped early: {stopping.metric} has not improved{by} {since}; best in {_named(best.round)}"
    return EarlyStop(number, best, detail)


def _named(number: int) -> str:
    return f"round {number}" if number else "the base model"
