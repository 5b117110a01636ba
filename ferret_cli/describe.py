"""An experiment as rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from ferret_cli.output import size

if TYPE_CHECKING:
    from ferret_sdk.schemas import Experiment, Rejection, Round, Summary

Row = tuple[Any, ...]


def list_row(experiment: Experiment) -> Row:
    loss, rouge = _last(experiment.metrics, "eval_loss"), _last(experiment.metrics, "rouge_l")
    return (
        experiment.id,
        experiment.name,
        experiment.shown_state,
        f"{experiment.round}/{experiment.rounds}",
        experiment.algorithm,
        _number(loss),
        _number(rouge, 1),
        f"{experiment.created_at:%Y-%m-%d %H:%M}",
    )


def overview_rows(experiment: Experiment) -> Iterator[Row]:
    yield "id", experiment.id
    yield "name", experiment.name
    yield "state", experiment.state.value
    if stall := experiment.stalled:
        yield "stalled", f"since {stall.since:%Y-%m-%d %H:%M} UTC: {stall.detail} ({stall.code})"
    if experiment.error:
        yield "error", f"{experiment.error.get('title')}: {experiment.error.get('detail')}"
    yield "round", f"{experiment.round} of {experiment.rounds}"
    yield "algorithm", experiment.algorithm
    yield "dataset", experiment.dataset
    yield "participants", experiment.participants
    yield "sent", size(experiment.bytes_up)
    yield "received", size(experiment.bytes_down)
    yield "model", experiment.digest or experiment.base_digest
    if experiment.cloned_from:
        yield "cloned from", experiment.cloned_from
    if experiment.archived_at:
        yield "put away", f"{experiment.archived_at:%Y-%m-%d %H:%M} UTC"


def metrics_rows(experiment: Experiment) -> Iterator[Row]:
    for name, summary in sorted(experiment.metrics.items()):
        if name not in COSTS:
            yield name, _number(summary.first), _number(summary.last), _number(summary.best)


def cost_rows(rounds: Sequence[Round]) -> Iterator[Row]:
    """The median of each cost over the rounds: the first compiles kernels, and would spoil a mean."""
    for name, (label, shown) in COSTS.items():
        values = [value for one in rounds if (value := _cost(one, name)) is not None]
        if values:
            yield label, shown(median(values))


def rejection_rows(rejections: Iterable[Rejection]) -> Iterator[Row]:
    for refused in rejections:
        yield refused.round, refused.participant, refused.count, refused.code, refused.detail


def label_rows(rounds: Sequence[Round]) -> Iterator[Row]:
    """Loss and Rouge-L of each label of the held-out data, in the last round that was evaluated."""
    found = next((one.metrics for one in reversed(rounds) if "eval_loss" in one.metrics), {})
    prefix = "eval_loss/"
    for label in sorted(name.removeprefix(prefix) for name in found if name.startswith(prefix)):
        yield label, _number(found[prefix + label]), _number(found.get(f"rouge_l/{label}"), 1)


def round_rows(rounds: Sequence[Round]) -> Iterator[Row]:
    for found in rounds:
        losses = (_number(found.metrics.get(name)) for name in ("train_loss", "eval_loss"))
        accepted = f"{found.accepted}/{found.participants}"
        rouge = _number(found.metrics.get("rouge_l"), 1)
        sent = (size(found.bytes_up), size(found.bytes_down))
        number = f"{found.number}" if found.attempt == 1 else f"{found.number}, attempt {found.attempt}"
        yield number, found.state.value, accepted, *losses, rouge, *sent


def _cost(done: Round, name: str) -> float | None:
    """One round's cost for one participant; byte counts are kept as sums over all."""
    value = done.metrics.get(name)
    if value is None or name not in {"bytes_up", "bytes_down"}:
        return value
    return value / max(1, done.accepted if name == "bytes_up" else done.participants)


def _seconds(value: float) -> str:
    return f"{value:.3g} s"


def _count(value: float) -> str:
    return f"{value:,.0f}"


COSTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "local_seconds": ("local update", _seconds),
    "aggregate_seconds": ("global aggregation", _seconds),
    "sequences_per_second": ("sequences per second", lambda value: f"{value:.3g}"),
    "parameters_up": ("parameters sent each", _count),
    "parameters_down": ("parameters received each", _count),
    "bytes_up": ("sent each", size),
    "bytes_down": ("received each", size),
    "peak_memory_bytes": ("peak memory", size),
    "peak_device_bytes": ("peak memory on the device", size),
}
"""What docs/metrics.md calls costs, as it is shown."""


def _last(metrics: Mapping[str, Summary], name: str) -> float | None:
    return metrics[name].last if name in metrics else None


def _number(value: float | None, digits: int = 4) -> str | None:
    return None if value is None else f"{value:.{digits}f}"
