"""An experiment as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ferret_cli.output import size

if TYPE_CHECKING:
    from ferret_sdk.run import Run
    from ferret_sdk.schemas import Experiment, Summary

Row = tuple[Any, ...]


def list_row(experiment: Experiment) -> Row:
    loss, rouge = _last(experiment.metrics, "eval_loss"), _last(experiment.metrics, "rouge_l")
    return (
        experiment.id,
        experiment.name,
        experiment.state.value,
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
    if experiment.error:
        yield "error", f"{experiment.error.get('title')}: {experiment.error.get('detail')}"
    yield "round", f"{experiment.round} of {experiment.rounds}"
    yield "algorithm", experiment.algorithm
    yield "dataset", experiment.dataset
    yield "participants", experiment.participants
    yield "sent", size(experiment.bytes_up)
    yield "received", size(experiment.bytes_down)
    yield "model", experiment.digest or experiment.base_digest


def metrics_rows(experiment: Experiment) -> Iterator[Row]:
    for name, summary in sorted(experiment.metrics.items()):
        yield name, _number(summary.first), _number(summary.last), _number(summary.best)


def round_rows(run: Run) -> Iterator[Row]:
    for found in run.rounds():
        losses = (_number(found.metrics.get(name)) for name in ("train_loss", "eval_loss"))
        accepted = f"{found.accepted}/{found.participants}"
        rouge = _number(found.metrics.get("rouge_l"), 1)
        sent = (size(found.bytes_up), size(found.bytes_down))
        yield found.number, found.state.value, accepted, *losses, rouge, *sent


def _last(metrics: Mapping[str, Summary], name: str) -> float | None:
    return metrics[name].last if name in metrics else None


def _number(value: float | None, digits: int = 4) -> str | None:
    return None if value is None else f"{value:.{digits}f}"
