"""A round: opened with its assignments, frozen, committed or abandoned and tried again, evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session

from ferret_core import federation
from ferret_core.ledger import contributions_digest
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import AssignmentState, ExperimentState, ParticipantKind, RoundState
from ferret_core.protocol.tasks import TaskName
from ferret_db import clock
from ferret_db.engine import checkpoints, lifecycle
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.repositories import assignments, contributions, events, experiments, ledger, outbox
from ferret_db.repositories import metrics as metric_rows
from ferret_db.repositories import rounds as round_rows
from ferret_db.repositories._swap import swap
from ferret_db.repositories.experiments import spec_of
from ferret_db.tables import Experiment, LedgerEntry, Round, new_id


def open_round(
    s: Session,
    experiment_id: str,
    number: int,
    tasks: Sequence[tuple[RoundTask, ParticipantKind, str | None]],
    deadline_seconds: float,
    bytes_down_each: int,
    needed: int | None = None,
) -> Round:
    """The open round ``number`` with one pending assignment per task (its third part: a real participant's id).

    ``bytes_down_each`` is what every participant fetches to reach the round's model; ``needed`` contributions close it,
    all if not given. A round that is already open, frozen or committed is returned as it is, and after an abandoned one
    comes the next attempt; ``experiment.conflict`` unless the experiment runs and this round is next.
    """
    experiment = experiments.lock(s, experiment_id)
    last = round_rows.latest(s, experiment_id, number)
    if last is not None and last.state != RoundState.ABANDONED:
        return last
    base_digest = _base_of_next(experiment, number)
    opened_at = clock.now(s)
    round_ = Round(
        experiment_id=experiment_id,
        number=number,
        attempt=1 if last is None else last.attempt + 1,
        base_digest=base_digest,
        opened_at=opened_at,
        deadline_at=opened_at + timedelta(seconds=deadline_seconds),
        needed=needed,
        bytes_down=bytes_down_each * len(tasks),
    )
    round_rows.add(s, round_)
    rows = [_assignment(round_, *task) for task in tasks]
    assignments.add_all(s, rows)
    data = {"participants": len(tasks), "attempt": round_.attempt, "deadline_at": round_.deadline_at.isoformat()}
    events.add(s, experiment_id, "round.opened", round=number, data=data)
    outbox.add_all(s, TaskName.TRAIN, [row["id"] for row in rows if row["kind"] == ParticipantKind.SIMULATED])
    return round_


def freeze_if_due(s: Session, round_id: str) -> bool:
    """Closes the open round if that is due, see :func:`close_if_due`; whether this call froze it."""
    experiment = experiments.lock(s, round_rows.get(s, round_id).experiment_id)
    return close_if_due(s, experiment, round_rows.get(s, round_id), assignments.count_of_round(s, round_id))


def close_if_due(s: Session, experiment: Experiment, round_: Round, counts: Mapping[AssignmentState, int]) -> bool:
    """Closes the open round once enough were accepted, all have finished or its deadline has passed, unless paused.

    With a quorum the accepted set and its digest are fixed and the aggregation is called for. Without one the round is
    abandoned and the next attempt called for; after the last the experiment fails with ``quorum.missed``.

    The experiment is locked, ``counts`` are the round's assignments. Returns whether this call froze the round.
    """
    if round_.state != RoundState.OPEN or experiment.state != ExperimentState.RUNNING:
        return False
    accepted = counts.get(AssignmentState.ACCEPTED, 0)
    waiting = counts.get(AssignmentState.PENDING, 0) + counts.get(AssignmentState.LEASED, 0)
    needed = round_.needed or sum(counts.values())
    if accepted < needed and waiting and clock.now(s) < round_.deadline_at:
        return False
    quorum = federation.quorum_size(spec_of(experiment).round.quorum, needed)
    if accepted >= quorum:
        return _freeze(s, round_)
    rejected = assignments.first_error(s, round_.id)
    reason = None if rejected is None else rejected["detail"]
    _miss(s, experiment, round_, federation.quorum_missed(round_.number, round_.attempt, accepted, quorum, reason))
    return False


def commit_round(
    s: Session,
    round_id: str,
    *,
    digest: str,
    record: dict[str, Any],
    record_hash: str,
    update_digest: str,
    update_size: int,
    artifacts: Sequence[ArtifactFile],
    metrics: Mapping[str, float],
) -> bool:
    """frozen → committed: the model with ``digest`` is the experiment's; False if it was not frozen (any more).

    Stores the ledger entry, the checkpoint's files and ``metrics`` beside the round's own ``bytes_up`` and
    ``bytes_down``, and calls for the evaluation where it is due. To open the next round is left to the caller.
    """
    experiment = experiments.lock(s, round_rows.get(s, round_id).experiment_id)
    round_ = round_rows.get(s, round_id)
    if round_.state != RoundState.FROZEN:
        return False
    if swap(s, round_, RoundState.COMMITTED, digest=digest, committed_at=clock.utcnow()) is None:
        return False
    number = round_.number
    experiments.advance(s, experiment.id, number, digest)
    ledger.add(
        s,
        LedgerEntry(
            experiment_id=experiment.id,
            round=number,
            record=record,
            hash=record_hash,
            update_digest=update_digest,
            update_size=update_size,
        ),
    )
    points = {"bytes_up": round_.bytes_up, "bytes_down": round_.bytes_down, **metrics}
    metric_rows.add(s, experiment.id, number, points)
    events.add(s, experiment.id, "round.committed", round=number, data={"digest": digest, "metrics": points})
    if artifacts:
        checkpoints.add(s, experiment.id, number, artifacts)
    if federation.evaluation_due(spec_of(experiment), number):
        outbox.add(s, TaskName.EVALUATE, round_id)
    return True


def give_up(s: Session, round_id: str, error: FerretError) -> None:
    """frozen → abandoned, because the frozen set cannot be read any more: the next attempt is called for.

    After the last the experiment fails with ``error``. Nothing happens to a round that is not frozen.
    """
    experiment = experiments.lock(s, round_rows.get(s, round_id).experiment_id)
    round_ = round_rows.get(s, round_id)
    if round_.state == RoundState.FROZEN:
        _miss(s, experiment, round_, error)


def record_evaluation(s: Session, experiment_id: str, number: int, metrics: Mapping[str, float]) -> None:
    """Stores what was measured after round ``number`` (0: the base model) and calls for what comes next.

    The first result counts: a repeated one, and one that comes after the experiment's end, changes nothing.
    """
    experiment = experiments.lock(s, experiment_id)
    known = metric_rows.by_round(s, experiment_id, [number]).get(number, {})
    if experiment.state.finished or any(name in known for name in metrics):
        return
    metric_rows.add(s, experiment_id, number, metrics)
    round_rows.evaluated(s, experiment_id, number)
    checkpoints.prune(s, experiment)
    events.add(s, experiment_id, "round.evaluated", round=number, data={"metrics": dict(metrics)})
    outbox.add(s, TaskName.COORDINATE, experiment_id)


def _miss(s: Session, experiment: Experiment, round_: Round, error: FerretError) -> None:
    """Gives the attempt up; the next one starts from the same model."""
    if round_.attempt >= spec_of(experiment).round.attempts:
        lifecycle.fail(s, experiment.id, error)
        return
    lifecycle.abandon_round(s, round_, error.to_json())
    outbox.add(s, TaskName.COORDINATE, experiment.id)


def _base_of_next(experiment: Experiment, number: int) -> str:
    """The digest that round ``number`` starts from."""
    if experiment.state != ExperimentState.RUNNING or experiment.digest is None or number != experiment.round + 1:
        raise FerretError(
            "experiment.conflict",
            f"round {number} of {experiment.id} cannot open: the experiment is {experiment.state} "
            f"and round {experiment.round} is its last committed round; run coordinate again",
        )
    return experiment.digest


def _assignment(round_: Round, task: RoundTask, kind: ParticipantKind, participant_id: str | None) -> dict[str, Any]:
    return {
        "id": new_id("asg"),
        "experiment_id": round_.experiment_id,
        "round_id": round_.id,
        "round": round_.number,
        "participant": task.participant,
        "kind": kind,
        "participant_id": participant_id,
        "task": task.model_dump(mode="json"),
    }


def _freeze(s: Session, round_: Round) -> bool:
    accepted = [(row.participant, row.digest) for row in contributions.of_round(s, round_.id)]
    digest = contributions_digest(accepted)
    if swap(s, round_, RoundState.FROZEN, frozen_digest=digest, frozen_at=clock.utcnow()) is None:
        return False
    assignments.expire(s, round_.id)
    data = {"accepted": len(accepted), "frozen_digest": digest}
    events.add(s, round_.experiment_id, "round.frozen", round=round_.number, data=data)
    outbox.add(s, TaskName.AGGREGATE, round_.id)
    return True
