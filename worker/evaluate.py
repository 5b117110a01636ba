"""``evaluate``: the held-out loss and Rouge-L of one round's model, or of the base model."""

from __future__ import annotations

from ferret_core.evaluation.evaluate import evaluate as measure
from ferret_core.protocol.errors import FerretError
from ferret_db.engine import lifecycle
from ferret_db.engine import rounds as round_engine
from ferret_db.repositories import experiments, metrics, rounds
from worker.context import Context


def evaluate(context: Context, subject: str) -> None:
    """Measures the round with the id ``subject``, or the experiment's base model; nothing if that is known or over."""
    with context.database.read() as s:
        round_ = rounds.get(s, subject) if subject.startswith("rnd_") else None
        experiment = experiments.get(s, round_.experiment_id if round_ else subject)
        number = round_.number if round_ else 0
        known = "eval_loss" in metrics.by_round(s, experiment.id, [number]).get(number, {})
    if known or experiment.state.finished:
        return
    try:
        bench = context.bench(experiment.id, number)
        replica = bench.replica
        measured = measure(replica.model, replica.tokenizer, bench.data.test, replica.spec.evaluation)
    except FerretError as error:
        with context.database.begin() as s:
            lifecycle.fail(s, experiment.id, error)
        return
    with context.database.begin() as s:
        round_engine.record_evaluation(s, experiment.id, number, measured)
