"""Quantities of a run: one number per round, and one for the whole run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from ferret_bench.reproduce.reruns.records import Record, RoundRecord
from ferret_core.protocol.formatting import size
from ferret_core.protocol.metrics import METRICS

CONVERGED_WITHIN = 0.05
ELSEWHERE = "eval_loss_on/"
"""Prefix of the metrics with the loss on another dataset of the study, followed by its name."""


@dataclass(frozen=True)
class Quantity:
    """A quantity. ``at`` reads a round (None: not measured there), ``over`` reduces the rounds' values in order.

    ``better`` is the end of a column that is marked as the best, as the paper does with scores.
    """

    name: str
    label: str
    show: Callable[[float], str]
    at: Callable[[RoundRecord], float | None]
    over: Callable[[Sequence[float]], float]
    better: Literal["low", "high"] | None = None
    given: Callable[[Record], float | None] | None = None
    """Function of the run's specification; if set, no round is read."""
    absolute: bool = False
    """True if a difference is in the quantity's own unit, because it may be near 0, not in percent of the reference."""

    def of(self, run: Record) -> float | None:
        """Returns the run's number, or None if no round has measured it."""
        if self.given is not None:
            return self.given(run)
        found = [value for done in run.rounds if (value := self.at(done)) is not None]
        return self.over(found) if found else None


def metric(name: str) -> Callable[[RoundRecord], float | None]:
    return lambda done: done.metrics.get(name)


def last(values: Sequence[float]) -> float:
    return values[-1]


def typical(values: Sequence[float]) -> float:
    """Returns the median of all rounds but the first, which compiles kernels and starts from the base model itself."""
    return median(values[1:] or values)


def rounds_to_converge(losses: Sequence[float]) -> float:
    """Returns the first round with a loss within 5 % of the way from the base model's to the best one."""
    best = min(losses)
    near = best + CONVERGED_WITHIN * (losses[0] - best)
    return next(number for number, loss in enumerate(losses) if loss <= near)


def bytes_up(done: RoundRecord) -> float | None:
    return done.bytes_up / done.participants if done.participants else None


def bytes_down(done: RoundRecord) -> float | None:
    return done.bytes_down / done.participants if done.participants else None


def bytes_both(done: RoundRecord) -> float | None:
    found = [count for count in (bytes_up(done), bytes_down(done)) if count is not None]
    return sum(found) if len(found) == 2 else None


def overall_seconds(done: RoundRecord) -> float | None:
    """Returns the paper's time of a round: one participant's local update and the global aggregation."""
    return _sum(done, "local_seconds", "aggregate_seconds")


def parameters(done: RoundRecord) -> float | None:
    """Returns the paper's count of parameters: the numbers that one participant sends and receives."""
    return _sum(done, "numbers_sent", "numbers_received")


def _sum(done: RoundRecord, *names: str) -> float | None:
    found = [done.metrics[name] for name in names if name in done.metrics]
    return sum(found) if len(found) == len(names) else None


def passes(run: Record) -> float | None:
    """Returns one participant's computation in a round, in forward passes of one sequence; a backward pass counts as
    two.

    Returns None for training by epochs, with steps that follow from the data.
    """
    local = run.spec["algorithm"]["local"]
    if local["steps"] is None:
        return None
    each = 2 * local["perturbations"] if "perturbations" in local else 3
    return each * local["steps"] * local["batch_size"] * local["accumulation"]


def elsewhere(done: RoundRecord) -> float | None:
    """Returns the mean loss on the study's other datasets."""
    found = [value for name, value in done.metrics.items() if name.startswith(ELSEWHERE)]
    return fmean(found) if found else None


def rise(values: Sequence[float]) -> float:
    return values[-1] - values[0]


def noise_in(number: int) -> Callable[[RoundRecord], float | None]:
    """Returns the projection's noise in one round: expected in round 0, measured in the others."""
    return lambda done: done.metrics.get("projection_noise") if done.number == number else None


def left(losses: Sequence[float]) -> float:
    """Returns the last value over the base model's."""
    return losses[-1] / losses[0]


def digits(count: int) -> Callable[[float], str]:
    return lambda value: f"{value:.{count}f}"


def signed(value: float) -> str:
    """Formats three decimals with their sign."""
    return f"{value:+.3f}"


def seconds(value: float) -> str:
    """Formats three digits."""
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1}f}"


def scientific(value: float) -> str:
    """Formats ``7.8×10³``; small numbers as they are."""
    if value < 1000:
        return f"{value:.0f}"
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa}×10{str(int(exponent)).translate(_RAISED)}"


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

# Scored by the paper's code: docs/researchers/metrics.md, "Rouge-L, twice".
ROUGE_L = Quantity("rouge_l", "Rouge-L, %", digits(2), metric("rouge_l_paper"), last, METRICS["rouge_l_paper"].better)
ROUGE_L_STANDARD = Quantity("rouge_l_standard", "Rouge-L, standard, %", digits(2), metric("rouge_l"), last)
EXACT_MATCH = Quantity(
    "exact_match",
    "Exact match, %",
    digits(1),
    metric("exact_match"),
    last,
    METRICS["exact_match"].better,
    absolute=True,
)
EVAL_LOSS = Quantity("eval_loss", "Evaluation loss", digits(3), metric("eval_loss"), last, METRICS["eval_loss"].better)
TRAIN_LOSS = Quantity("train_loss", "Training loss", digits(3), metric("train_loss"), last)
FORGETTING = Quantity("forgetting", "Loss on other data, change", signed, elsewhere, rise, "low", absolute=True)
CONVERGED = Quantity("rounds_to_converge", "Rounds to converge", digits(1), metric("eval_loss"), rounds_to_converge)
BYTES_UP = Quantity("bytes_up", "Sent per round", size, bytes_up, fmean)
TOTAL_UP = Quantity("total_up", "Sent in all rounds", size, bytes_up, sum)
BYTES_DOWN = Quantity("bytes_down", "Received per round", size, bytes_down, typical)
EXPECTED_NOISE = Quantity("expected_noise", "Noise expected, %", digits(1), noise_in(0), last)
MEASURED_NOISE = Quantity("measured_noise", "Noise measured, %", digits(1), noise_in(1), last)
LOSS_LEFT = Quantity("loss_left", "Loss left", digits(3), metric("eval_loss"), left, "low")
BYTES_BOTH = Quantity("bytes_both", "Both ways", size, bytes_both, typical)
PASSES = Quantity("passes", "Forward passes per round", digits(0), lambda _: None, fmean, given=passes)
LOCAL = Quantity("local_seconds", "Local update, s", seconds, metric("local_seconds"), typical)
AGGREGATE = Quantity("aggregate_seconds", "Global aggr., s", seconds, metric("aggregate_seconds"), typical)
OVERALL = Quantity("overall_seconds", "Overall, s", seconds, overall_seconds, typical)
PARAMETERS = Quantity("parameters", "Parameters", scientific, parameters, typical)
PEAK_DEVICE = Quantity("peak_device_bytes", "Peak, device", size, metric("peak_device_bytes"), max)
PEAK_MEMORY = Quantity("peak_memory_bytes", "Peak, host", size, metric("peak_memory_bytes"), max)
