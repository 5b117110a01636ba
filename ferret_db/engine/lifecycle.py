"""The life of an experiment from submission to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.resources.alerts import AlertEvent
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState, RoundState, may_move
from ferret_core.protocol.tags_and_notes import LEAST_PRIORITY
from ferret_core.protocol.task_names import TaskName
from ferret_core.rounds.early_stopping import EarlyStop
from ferret_db.clock import utcnow
from ferret_db.engine import alerts, checkpoints, round_span
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.repositories import alerts as alert_rows
from ferret_db.repositories import assignments, events, experiments, outbox, rounds, secure_sums
from ferret_db.repositories.events import EventType
from ferret_db.statements import swap
from ferret_db.tables import FIRST_PROJECT, Experiment, Round

_FINAL_EVENTS: dict[ExperimentState, EventType] = {
    ExperimentState.COMPLETED: "experiment.completed",
    ExperimentState.FAILED: "experiment.failed",
    ExperimentState.CANCELLED: "experiment.cancelled",
}


_EXTENSIBLE = frozenset({ExperimentState.RUNNING, ExperimentState.PAUSED, ExperimentState.COMPLETED})


def submit(
    s: Session,
    spec: ExperimentSpec,
    *,
    project: str = FIRST_PROJECT,
    priority: int = LEAST_PRIORITY,
    idempotency_key: str | None = None,
    cloned_from: str | None = None,
) -> tuple[Experiment, bool]:
    """Creates a queued experiment of ``project``. Also returns whether this call created it.

    The same key with the same specification finds the first call's experiment of the project. With another
    specification it raises ``idempotency.conflict``. ``cloned_from`` is the id of the experiment that the specification
    comes from.
    """
    about = {"project": project, "priority": priority, "cloned_from": cloned_from}
    if idempotency_key is None:
        return _queue(s, spec, **about), True
    digest = digest_json(spec.model_dump(mode="json"))
    try:
        with s.begin_nested():
            return _queue(s, spec, **about, idempotency_key=idempotency_key, idempotency_digest=digest), True
    except IntegrityError:
        return _repeated(s, project, idempotency_key, digest), False


def start(
    s: Session,
    experiment_id: str,
    base_digest: str,
    shapes: Mapping[str, Sequence[int]],
    base: Sequence[ArtifactFile],
    spec: ExperimentSpec | None = None,
) -> Experiment:
    """Moves queued → running, now that the base model is stored as round 0's checkpoint.

    ``base_digest`` is its digest and ``shapes`` are the tuned parameters' shapes. ``spec`` replaces the specification
    by the same one with what follows from the base model; None changes nothing. Requests its evaluation. An experiment
    in another state stays as it is.
    """
    experiment = experiments.lock(s, experiment_id)
    if experiment.state != ExperimentState.QUEUED:
        return experiment
    document = experiment.spec if spec is None else spec.model_dump(mode="json")
    running = _move(
        s,
        experiment,
        ExperimentState.RUNNING,
        spec=document,
        seed_group=experiments.seed_group(experiment.project, document),
        base_digest=base_digest,
        digest=base_digest,
        shapes={name: list(shape) for name, shape in shapes.items()},
        started_at=utcnow(),
    )
    events.add(s, experiment_id, "experiment.running", data={"base_digest": base_digest})
    checkpoints.add(s, experiment_id, 0, base)
    outbox.add(s, TaskName.EVALUATE, experiment_id)
    return running


def pause(s: Session, experiment_id: str) -> Experiment:
    """Moves running → paused: no round opens or closes, and leases are taken back. Pausing twice changes nothing.

    An open round keeps what it has accepted and the time to its deadline. A frozen round may still be committed.
    """
    experiment = experiments.lock(s, experiment_id)
    if experiment.state == ExperimentState.PAUSED:
        return experiment
    paused = _move(s, experiment, ExperimentState.PAUSED)
    for round_ in rounds.in_states(s, experiment_id, RoundState.OPEN):
        rounds.stop_clock(s, round_)
        assignments.take_back(s, round_.id)
    events.add(s, experiment_id, "experiment.paused")
    outbox.touch(s, experiment_id)  # frees its place
    return paused


def resume(s: Session, experiment_id: str) -> Experiment:
    """Moves paused → running: the open round continues with the time it had left. Resuming twice changes nothing."""
    experiment = experiments.lock(s, experiment_id)
    if experiment.state == ExperimentState.RUNNING:
        return experiment
    if experiment.state != ExperimentState.PAUSED:
        raise _conflict(experiment, "only a paused experiment can be resumed")
    resumed = _move(s, experiment, ExperimentState.RUNNING)
    for round_ in rounds.in_states(s, experiment_id, RoundState.OPEN):
        rounds.start_clock(s, round_)
    for round_ in rounds.in_states(s, experiment_id, RoundState.FROZEN):
        if round_.stage is not None:
            rounds.restart_stage(s, round_, rounds.STAGE_SECONDS)
    outbox.withdraw(s, experiment_id, [TaskName.TRAIN])  # tasks that were taken meanwhile had no effect
    events.add(s, experiment_id, "experiment.resumed")
    outbox.add(s, TaskName.COORDINATE, experiment_id)
    return resumed


def extend(s: Session, experiment_id: str, more: int) -> Experiment:
    """Adds ``more`` rounds. A completed experiment runs again, and its patience restarts.

    An experiment that stopped early gets ``more`` rounds from where it stopped. The rounds that it did not run are
    forgotten. A local ``schedule`` stretches over the new number of rounds.

    Raises ``extension.refused`` if the server's step depends on the number of rounds, and ``experiment.conflict``
    unless the experiment is running, paused or completed.
    """
    experiment = experiments.lock(s, experiment_id)
    if experiment.state not in _EXTENSIBLE:
        raise _conflict(experiment, "clone it with more rounds")
    total = _extended(experiment, more)
    spec = {**experiment.spec, "rounds": total}
    values = {"rounds": total, "spec": spec, "seed_group": experiments.seed_group(experiment.project, spec)}
    if experiment.state == ExperimentState.COMPLETED:
        values |= {"stopped": None, "patience_from_round": experiment.round}
        _move(s, experiment, ExperimentState.RUNNING, finished_at=None, archived_at=None)
    after = {"stopped_after": experiment.round} if experiment.stopped else {}
    extended = experiments.change(s, experiment_id, **values)
    events.add(s, experiment_id, "experiment.extended", data={"rounds": total, **after})
    outbox.add(s, TaskName.COORDINATE, experiment_id)
    return extended


def rounds_to_the_end(experiment: Experiment) -> int:
    """Returns the number of rounds until the experiment's end: all, or those before it stopped early."""
    return experiment.round if experiment.stopped else experiment.rounds


def complete(s: Session, experiment_id: str, stop: EarlyStop | None = None) -> Experiment:
    """Moves running → completed. Raises ``experiment.conflict`` from any other state; completing twice changes nothing.

    ``stop`` is the reason if this is before the last round.
    """
    return _finish(s, experiment_id, ExperimentState.COMPLETED, stop=stop)


def cancel(s: Session, experiment_id: str) -> Experiment:
    """Stops the experiment: abandons rounds, ends leases, refuses late results. Cancelling twice changes nothing."""
    return _finish(s, experiment_id, ExperimentState.CANCELLED)


def fail(s: Session, experiment_id: str, error: FerretError) -> Experiment:
    """Stops the experiment and stores the error. Failing twice keeps the first error."""
    return _finish(s, experiment_id, ExperimentState.FAILED, error.to_json())


def archive(s: Session, experiment_id: str) -> Experiment:
    """Hides the finished experiment from lists; may be repeated. Raises ``experiment.conflict`` if it runs."""
    experiment = _finished(s, experiment_id, "archived")
    if experiment.archived_at is not None:
        return experiment
    return experiments.change(s, experiment_id, archived_at=utcnow())


def unarchive(s: Session, experiment_id: str) -> Experiment:
    """Shows the archived experiment in lists again."""
    _finished(s, experiment_id, "archived")
    return experiments.change(s, experiment_id, archived_at=None)


def delete(s: Session, experiment_id: str) -> None:
    """Deletes every row of the finished experiment; garbage collection removes its files."""
    _finished(s, experiment_id, "deleted")
    for alert in alert_rows.of_experiment(s, experiment_id):
        alert_rows.delete(s, alert.id)
    experiments.delete(s, experiment_id)


def abandon_round(s: Session, round_: Round, error: dict[str, Any] | None) -> None:
    """Moves opening, open or frozen → abandoned. The caller has locked the experiment."""
    abandoned = swap(s, round_, RoundState.ABANDONED, error=error)
    if abandoned is None:
        return
    round_span.ended(s, abandoned)
    assignments.expire(s, round_.id)
    if round_.stage is not None:
        secure_sums.end(s, round_.id)
    outbox.withdraw(s, round_.experiment_id, [TaskName.TRAIN])
    data = {} if error is None else {"code": error["code"], "detail": error["detail"]}
    events.add(s, round_.experiment_id, "round.abandoned", round=round_.number, data=data)


def _queue(s: Session, spec: ExperimentSpec, **about: Any) -> Experiment:
    experiment = experiments.add(s, spec, **about)
    events.add(s, experiment.id, "experiment.queued", data={"name": spec.name})
    outbox.add(s, TaskName.COORDINATE, experiment.id)
    return experiment


def _repeated(s: Session, project: str, key: str, digest: str) -> Experiment:
    first = experiments.by_idempotency_key(s, project, key)
    if first.idempotency_digest != digest:
        raise FerretError.of_field(
            "idempotency.conflict",
            "Idempotency-Key",
            key,
            f"was used to submit {first.id} with another specification; use a new key",
        )
    return first


def _finish(
    s: Session,
    experiment_id: str,
    state: ExperimentState,
    error: dict[str, Any] | None = None,
    stop: EarlyStop | None = None,
) -> Experiment:
    experiment = experiments.lock(s, experiment_id)
    if experiment.state == state:
        return experiment
    stopped = stop and {"round": stop.round, "detail": stop.detail, "best": stop.best._asdict()}
    finished = _move(s, experiment, state, error=error, stopped=stopped, finished_at=utcnow())
    for round_ in rounds.in_states(s, experiment_id, RoundState.OPENING, RoundState.OPEN, RoundState.FROZEN):
        abandon_round(s, round_, error)
    data = {} if error is None else {"code": error["code"], "detail": error["detail"]}
    events.add(s, experiment_id, _FINAL_EVENTS[state], data=data | ({"stopped": stopped} if stopped else {}))
    alerts.announce(s, finished, _told(state, stop), stop.detail if stop else data.get("detail"))
    outbox.withdraw(s, experiment_id, [task for task in TaskName if task != TaskName.REPAIR])
    outbox.touch(s, experiment_id)  # frees its place
    return finished


def _told(state: ExperimentState, stop: EarlyStop | None) -> AlertEvent:
    return AlertEvent.STOPPED if stop else AlertEvent(state.value)


def _extended(experiment: Experiment, more: int) -> int:
    spec = experiments.spec_of(experiment)
    if spec.privacy.of_records:
        message = f"has noise for {spec.rounds} rounds, and the sites spend no more than that: run a copy"
        raise FerretError.of_field("extension.refused", "privacy.unit", spec.privacy.unit, message)
    schedule = spec.server.schedule
    if schedule != "constant":
        message = (
            "depends on the number of rounds, so the rounds so far would have been others: clone it with more rounds"
        )
        raise FerretError.of_field("extension.refused", "server.schedule", schedule, message)
    so_far = rounds_to_the_end(experiment)
    total = so_far + more
    if more < 1 or total > MAX_ROUNDS:
        message = f"an experiment of {so_far} rounds takes 1 to {MAX_ROUNDS - so_far} more"
        raise FerretError.of_field("extension.refused", "rounds", more, message)
    return total


def _finished(s: Session, experiment_id: str, done: str) -> Experiment:
    experiment = experiments.lock(s, experiment_id)
    if not experiment.state.finished:
        raise _conflict(experiment, f"only a finished experiment can be {done}: cancel it first")
    return experiment


def _move(s: Session, experiment: Experiment, after: ExperimentState, **values: Any) -> Experiment:
    moved = swap(s, experiment, after, **values) if may_move(experiment.state, after) else None
    if moved is None:
        raise _conflict(experiment, f"it cannot become {after}; reload it")
    return moved


def _conflict(experiment: Experiment, reason: str) -> FerretError:
    return FerretError("experiment.conflict", f"{experiment.id} is {experiment.state}: {reason}")
