"""The mean of the last rounds' models, measured beside the last model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ferret_core.average import TailMean
from ferret_core.datasets._base import Example
from ferret_core.evaluation.evaluate import evaluate
from ferret_core.replica import Replica
from ferret_core.robust.guard import Guard


def development_loss(average: TailMean | None, replica: Replica, guard: Guard) -> dict[str, float]:
    """The mean's loss on the development sequences; nothing without a mean, and before it begins."""
    if average is None or not average.count:
        return {}
    with average.in_place(replica):
        return {"average_development_loss": guard.loss(replica.model)}


def eval_loss(
    average: TailMean | None,
    replica: Replica,
    held_out: Sequence[Example],
    on_batch: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """The mean's loss on the held-out examples that :func:`evaluate` takes; nothing without a mean, and before it
    begins."""
    if average is None or not average.count:
        return {}
    spec = replica.spec
    alone = spec.evaluation.model_copy(update={"generate": 0, "by_label": False})
    with average.in_place(replica):
        found = evaluate(replica.model, replica.tokenizer, held_out, alone, on_batch, prompt=spec.prompt)
    return {"average_eval_loss": found["eval_loss"]}
