"""An experiment from submission to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState, RoundState, may_move
from ferret_core.protocol.tasks import TaskName
from ferret_db.clock import utcnow
from ferret_db.engine import checkpoints
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.repositories import assignments, events, experiments, outbox, rounds
from ferret_db.repositories._swap import swap
from ferret_db.repositories.events import EventType
from ferret_db.tables import Experiment, Round

_FINAL_EVENTS: dict[ExperimentState, EventType] = {
    ExperimentState.COMPLETED: "experiment.completed",
    ExperimentState.FAILED: "experiment.failed",
    ExperimentState.CANCELLED: "experiment.cancelled",
}


def submit(s: Session, spec: ExperimentSpec, *, idempotency_key: str | None = None) -> tuple[Experiment, bool]:
    """A queued experiment, and whether this call made it.

    The same key with the same spec finds the first call's experiment; with another it is ``idempotency.conflict``.
    """
    digest = digest_json(spec.model_dump(mode="json"))
    if idempotency_key is None:
        return _queue(s, spec), True
    try:
        with s.begin_nested():
            return _queue(s, spec, idempotency_key=idempotency_key, idempotency_digest=digest), True
    except IntegrityError:
        return _repeated(s, idempotency_key, digest), False


def start(
    s: Session, experiment_id: str, base_digest: str, shapes: Mapping[str, Sequence[int]], base: Sequence[ArtifactFile]
) -> Experiment:
    """queued → running: the base model is stored as round 0's checkpoint, its digest and what is tuned are known.

    Calls for its evaluation. A running experiment stays as it is; ``experiment.conflict`` if it is over.
    """
    experiment = experiments.lock(s, experiment_id)
    if experiment.state == ExperimentState.RUNNING:
        return experiment
    running = _move(
        s,
        experiment,
        ExperimentState.RUNNING,
        base_digest=base_digest,
        digest=base_digest,
        shapes={name: list(shape) for name, shape in shapes.items()},
        started_at=utcnow(),
    )
    events.add(s, experiment_id, "experiment.running", data={"base_digest": base_digest})
    checkpoints.add(s, experiment_id, 0, base)
    outbox.add(s, TaskName.EVALUATE, experiment_id)
    return running


def complete(s: Session, experiment_id: str) -> Experiment:
    """running → completed; ``experiment.conflict`` from any other state, but completing twice is once."""
    return _finish(s, experiment_id, ExperimentState.COMPLETED)


def cancel(s: Session, experiment_id: str) -> Experiment:
    """Stops the experiment: rounds are abandoned, leases end, late results are refused. Cancelling twice is once."""
    return _finish(s, experiment_id, ExperimentState.CANCELLED)


def fail(s: Session, experiment_id: str, error: FerretError) -> Experiment:
    """Stops the experiment and keeps the reason; failing twice keeps the first."""
    return _finish(s, experiment_id, ExperimentState.FAILED, error.to_json())


def abandon_round(s: Session, round_: Round, error: dict[str, Any] | None) -> None:
    """open or frozen → abandoned; the caller has locked the experiment."""
    if swap(s, round_, RoundState.ABANDONED, error=error) is None:
        return
    assignments.expire(s, round_.id)
    data = {} if error is None else {"code": error["code"], "detail": error["detail"]}
    events.add(s, round_.experiment_id, "round.abandoned", round=round_.number, data=data)


def _queue(s: Session, spec: ExperimentSpec, **idempotency: str) -> Experiment:
    experiment = experiments.add(s, spec, **idempotency)
    events.add(s, experiment.id, "experiment.queued", data={"name": spec.name})
    outbox.add(s, TaskName.COORDINATE, experiment.id)
    return experiment


def _repeated(s: Session, key: str, digest: str) -> Experiment:
    first = experiments.by_idempotency_key(s, key)
    if first.idempotency_digest != digest:
        raise FerretError.of_field(
            "idempotency.conflict", "Idempotency-Key", key, f"submitted {first.id} with another body; use a new key"
        )
    return first


def _finish(s: Session, experiment_id: str, state: ExperimentState, error: dict[str, Any] | None = None) -> Experiment:
    experiment = experiments.lock(s, experiment_id)
    if experiment.state == state:
        return experiment
    finished = _move(s, experiment, state, error=error, finished_at=utcnow())
    for round_ in rounds.in_states(s, experiment_id, RoundState.OPEN, RoundState.FROZEN):
        abandon_round(s, round_, error)
    data = {} if error is None else {"code": error["code"], "detail": error["detail"]}
    events.add(s, experiment_id, _FINAL_EVENTS[state], data=data)
    return finished


def _move(s: Session, experiment: Experiment, after: ExperimentState, **values: Any) -> Experiment:
    moved = swap(s, experiment, after, **values) if may_move(experiment.state, after) else None
    if moved is None:
        raise FerretError(
            "experiment.conflict", f"{experiment.id} is {experiment.state} and cannot become {after}; look at it again"
        )
    return moved
