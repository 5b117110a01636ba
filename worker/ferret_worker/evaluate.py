"""``evaluate``: the held-out loss and Rouge-L of one round's model, or of the base model."""

from __future__ import annotations

from functools import partial

from sqlalchemy.orm import Session

from ferret_core.aggregation.projection_noise import of_base
from ferret_core.evaluation.evaluate import evaluate as measure
from ferret_core.protocol.errors import FerretError
from ferret_core.rounds import early_stopping
from ferret_core.system.device import memory_checked
from ferret_core.system.failpoints import failpoint
from ferret_db.engine import lifecycle
from ferret_db.engine import rounds as round_engine
from ferret_db.engine.task_attempts import REFUSED, TRANSIENT
from ferret_db.repositories import experiments, metrics, rounds
from ferret_worker.repair import repaired
from ferret_worker.worker_state import CancellationCheck, WorkerState


def evaluate(context: WorkerState, subject: str) -> None:
    """Evaluates the round with the id ``subject``, or the experiment's base model, unless that is done or over.

    An error of the model fails the experiment. Raises temporary errors, and the errors that stop unneeded or
    transferable work.
    """
    with context.database.read() as s:
        round_ = rounds.get(s, subject) if subject.startswith("rnd_") else None
        experiment = experiments.get(s, round_.experiment_id if round_ else subject)
        number = round_.number if round_ else 0
        known = "eval_loss" in metrics.by_round(s, experiment.id, [number]).get(number, {})
    if known or experiment.state.finished:
        return
    failpoint("evaluate.begun")
    try:
        with memory_checked():
            kept = repaired(context, experiment.id, lambda: context.model_at(experiment.id, number))
            replica, watch = kept.replica, CancellationCheck(context, experiment.id)
            spec, held_out = replica.spec, kept.data.held_out
            measured = measure(
                replica.model, replica.tokenizer, held_out, spec.evaluation, watch.check, prompt=spec.prompt
            )
            if number == 0:
                early_stopping.require_measured(spec, measured)
                measured |= noise.metrics(by_block=True) if (noise := of_base(replica, kept.data)) else {}
    except FerretError as error:
        if error.code in REFUSED | TRANSIENT:
            raise
        context.database.transact(partial(_fail, experiment_id=experiment.id, error=error))
        return
    failpoint("evaluate.measured")
    context.database.transact(lambda s: round_engine.record_evaluation(s, experiment.id, number, measured))
    failpoint("evaluate.recorded")


def _fail(s: Session, experiment_id: str, error: FerretError) -> None:
    if not experiments.lock(s, experiment_id).state.finished:
        lifecycle.fail(s, experiment_id, error)
