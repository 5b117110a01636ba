"""Rounds: opened with their assignments, frozen, committed or abandoned and retried, evaluated."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from sqlalchemy.orm import Session

from ferret_core.ledger.record import contributions_digest
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import AssignmentState, ExperimentState, ParticipantKind, RoundState, SumStage
from ferret_core.protocol.task_names import TaskName
from ferret_core.rounds import sampling
from ferret_core.rounds.sampling import Rejection
from ferret_core.secure.prekeys import PREKEY_BYTES
from ferret_core.secure.roster import Roster
from ferret_db import clock
from ferret_db.engine import checkpoints, lifecycle, round_span
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.repositories import (
    assignments,
    contributions,
    events,
    experiments,
    ledger,
    outbox,
    rounds,
    secure_sums,
    service_clock,
)
from ferret_db.repositories import metrics as metric_rows
from ferret_db.repositories import rounds as round_rows
from ferret_db.repositories.experiments import spec_of
from ferret_db.statements import swap
from ferret_db.tables import Experiment, LedgerEntry, Round

Task = tuple[RoundTask, ParticipantKind, str | None]
"""A participant's task, its kind, and the id of a real participant."""

NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})


def open_round(
    s: Session,
    experiment_id: str,
    number: int,
    tasks: Sequence[Task],
    deadline_seconds: float,
    bytes_down_each: int,
    needed: int | None = None,
    rosters: Sequence[Roster] = (),
) -> Round:
    """Opens round ``number`` with one pending assignment per task. A task's third part is a real participant's id.

    ``bytes_down_each`` is what every participant fetches to reach the round's model. ``needed`` contributions close the
    round (default: all). With ``rosters`` it is a secure sum of each group. A round that is already open, frozen or
    committed is returned unchanged; after an abandoned one the next attempt opens. Raises ``experiment.conflict``
    unless the experiment runs and this round is next.
    """
    round_, begun = _begin(s, experiment_id, number, deadline_seconds, bytes_down_each * len(tasks), needed)
    if begun:
        assignments.add_all(s, assignment_rows(round_, tasks))
        if rosters:
            secure_sums.add(s, round_, rosters)
            rounds.enter(s, round_, SumStage.DEAL)
            rounds.restart_stage(s, round_, rounds.dealing_seconds(deadline_seconds))
            rounds.add_bytes_up(s, round_, PREKEY_BYTES * len(tasks))
        _opened(s, round_, deadline_seconds, len(tasks))
    return round_


def announce_round(
    s: Session,
    experiment_id: str,
    number: int,
    population: Sequence[str],
    deadline_seconds: float,
    bytes_down: int,
    needed: int | None = None,
) -> Round:
    """Opens a round with more participants than one transaction should add: it is in state opening, without
    assignments.

    ``population`` names the real participants that it is drawn from, in addition to the simulated ones. Each
    :func:`fill_round` adds some, and :func:`open_announced` starts the round. All three may be repeated.
    """
    opening = RoundState.OPENING, list(population)
    round_, begun = _begin(s, experiment_id, number, deadline_seconds, bytes_down, needed, *opening)
    if begun:
        outbox.add(s, TaskName.COORDINATE, experiment_id)
    return round_


def assignment_rows(round_: Round, tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Returns the rows that :func:`fill_round` adds for all of the round's tasks, in their order."""
    return [_assignment(round_, *task) for task in enumerate(tasks)]


def fill_round(s: Session, round_: Round, rows: Sequence[dict[str, Any]]) -> bool:
    """Adds some of the round's pending assignments, unless they exist. Returns False if the round is not opening."""
    experiments.lock(s, round_.experiment_id)
    if round_rows.get(s, round_.id).state != RoundState.OPENING:
        return False
    assignments.add_missing(s, rows)
    return True


def open_announced(s: Session, round_id: str, participants: int, deadline_seconds: float) -> None:
    """Moves opening → open, now that all assignments exist. The time to the deadline starts."""
    experiment = experiments.lock(s, round_rows.get(s, round_id).experiment_id)
    round_ = round_rows.get(s, round_id)
    if round_.state != RoundState.OPENING or experiment.state != ExperimentState.RUNNING:
        return
    deadline_at = service_clock.time_ahead(s) + timedelta(seconds=deadline_seconds)
    opened = swap(s, round_, RoundState.OPEN, opened_at=clock.utcnow(), deadline_at=deadline_at, population=None)
    if opened is not None:
        _opened(s, opened, deadline_seconds, participants)
        give_up_revoked(s, experiment, opened)


def give_up_revoked(s: Session, experiment: Experiment, round_: Round) -> None:
    """Ends the revoked participants' unfinished work in the open round, which closes if nothing else is missing.

    Their accepted contributions stay. The experiment is locked.
    """
    error = FerretError("participant.revoked", "the participant was removed from the experiment")
    for name in assignments.reject_revoked(s, round_.id, error.summary()):
        data = {"participant": name, "kind": ParticipantKind.EDGE, "code": error.code, "detail": error.detail}
        events.add(s, experiment.id, "contribution.rejected", round=round_.number, data=data)
    close_if_due(s, experiment, round_, assignments.count_of_round(s, round_.id), service_clock.time(s))


def freeze_if_due(s: Session, round_id: str) -> bool:
    """Closes the open round if that is due, see :func:`close_if_due`. Returns True if this call froze it."""
    experiment = experiments.lock(s, round_rows.get(s, round_id).experiment_id)
    counts = assignments.count_of_round(s, round_id)
    return close_if_due(s, experiment, round_rows.get(s, round_id), counts, service_clock.time(s))


def close_if_due(
    s: Session, experiment: Experiment, round_: Round, counts: Mapping[AssignmentState, int], time: datetime
) -> bool:
    """Closes the open round once enough were accepted, all have finished or its deadline has passed, unless paused.

    With a quorum the accepted set and its digest are fixed and the aggregation is requested. Without one the round is
    abandoned and the next attempt requested. After the last attempt the experiment fails with the error of
    :func:`ferret_core.rounds.sampling.quorum_missed`.

    A secure sum goes from the deals to the masked vectors in the same way, and its aggregation is requested once its
    masks are opened (:mod:`ferret_db.engine.secure_sums`).

    The experiment is locked, ``counts`` are the round's assignments, and ``time`` is the service's. Returns True if
    this call froze the round.
    """
    if round_.state != RoundState.OPEN or experiment.state != ExperimentState.RUNNING:
        return False
    if round_.stage == SumStage.DEAL:
        _close_dealing(s, experiment, round_, time)
        return False
    accepted = counts.get(AssignmentState.ACCEPTED, 0)
    waiting = counts.get(AssignmentState.PENDING, 0) + counts.get(AssignmentState.LEASED, 0)
    needed = round_.required_contributions or sum(counts.values())
    if accepted < needed and waiting and time < round_.deadline_at:
        return False
    quorum = sampling.quorum(spec_of(experiment), needed)
    if round_.stage is not None and accepted >= quorum:
        arrived = {name for name, _ in contributions.digests_of_round(s, round_.id)}
        accepted, quorum = _least_filled(secure_sums.rosters_of(s, round_.id), arrived)
    if accepted >= quorum:
        return _freeze(s, round_)
    reasons = [Rejection(error["code"], error["detail"]) for error in assignments.errors(s, round_.id)]
    miss(s, experiment, round_, sampling.quorum_missed(round_.number, round_.attempt, accepted, quorum, reasons))
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
    inside: Mapping[str, Any],
    absurd: Mapping[str, Sequence[str]] = NOTHING,
    transcripts: Sequence[Mapping[str, Any]] = (),
) -> bool:
    """Moves frozen → committed: the model with ``digest`` is the experiment's. Returns False if it is not frozen.

    Stores the ledger entry, the checkpoint's files and ``metrics``, together with the round's own ``bytes_up`` and
    ``bytes_down``, and requests the evaluation if it is due. The caller opens the next round. ``inside`` holds the
    update statistics, ``transcripts`` the secure sums' transcripts. ``absurd`` names, by participant, its reported
    metrics that were left out of ``metrics``.
    """
    experiment = experiments.lock(s, round_rows.get(s, round_id).experiment_id)
    round_ = round_rows.get(s, round_id)
    if round_.state != RoundState.FROZEN:
        return False
    committed = swap(s, round_, RoundState.COMMITTED, digest=digest, committed_at=clock.utcnow())
    if committed is None:
        return False
    round_span.ended(s, committed)
    number, clipped = round_.number, dict(record["clipped"])
    contributions.note_factors(s, round_.id, clipped)
    _refuse(s, round_, {participant: why for participant, _, why in record["refused"]})
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
    rounds.add_update_statistics(s, experiment.id, number, inside)
    if transcripts:
        secure_sums.end(s, round_.id, transcripts)
    points = {"bytes_up": round_.bytes_up, "bytes_down": round_.bytes_down, **metrics}
    metric_rows.add(s, experiment.id, number, points)
    notes = {"clipped": clipped, "absurd": {name: list(names) for name, names in absurd.items()}}
    data = {"digest": digest, "metrics": points, **{name: note for name, note in notes.items() if note}}
    events.add(s, experiment.id, "round.committed", round=number, data=data)
    if artifacts:
        checkpoints.add(s, experiment.id, number, artifacts)
    if sampling.evaluation_due(spec_of(experiment), number):
        outbox.add(s, TaskName.EVALUATE, round_id, experiment.id)
    return True


def keep_noised_sum(s: Session, round_id: str, body: bytes) -> bytes:
    """Stores the frozen round's sum with the server's noise, once, before anything is made of it.

    Returns the stored one, which may be another process's. Raises ``round.closed`` if the round is not frozen.
    """
    experiment = experiments.lock(s, rounds.get(s, round_id).experiment_id)
    if (kept := rounds.noised_sum(s, round_id)) is not None:
        return kept
    round_ = rounds.get(s, round_id)
    if round_.state != RoundState.FROZEN:
        detail = f"round {round_.number} of {experiment.id} is {round_.state}: its contributions are no longer used"
        raise FerretError("round.closed", detail)
    rounds.add_noised_sum(s, round_, body)
    return body


def abandon_unnoised(s: Session) -> None:
    """Abandons the open and frozen rounds of a restored backup that use central noise and have no noised sum.

    The service may have summed their contributions after the backup. A second draw of noise on the same contributions
    would reveal more of them. The next attempt has other ones.
    """
    for experiment in experiments.unfinished(s):
        if not spec_of(experiment).privacy.central:
            continue
        for round_ in round_rows.in_states(s, experiment.id, RoundState.OPEN, RoundState.FROZEN):
            if rounds.noised_sum(s, round_.id) is None:
                detail = (
                    f"round {round_.number} was under way in the backup, and its contributions are not summed twice"
                )
                lifecycle.abandon_round(s, round_, FerretError("round.closed", detail).to_json())
                outbox.add(s, TaskName.COORDINATE, experiment.id)


def give_up(s: Session, round_id: str, error: FerretError) -> None:
    """Moves frozen → abandoned, because the frozen set can no longer be read or summed, and requests the next attempt.

    After the last attempt the experiment fails with ``error``. Does nothing if the round is not frozen.
    """
    experiment = experiments.lock(s, round_rows.get(s, round_id).experiment_id)
    round_ = round_rows.get(s, round_id)
    if round_.state == RoundState.FROZEN:
        if error.code == "secure.shares_invalid":  # it names the member that dealt them
            assignments.refuse(s, round_id, {str(each.value): error.to_json() for each in error.errors})
        miss(s, experiment, round_, error)


def undo(s: Session, round_id: str, error: FerretError) -> None:
    """Moves frozen → abandoned, because the update would have broken the model; the next attempt starts from its base.

    ``refused`` among the error's members holds reasons by participant: these are rejected and skip the next attempt.
    After the last attempt the experiment fails with ``error``. Does nothing if the round is not frozen.
    """
    experiment = experiments.lock(s, round_rows.get(s, round_id).experiment_id)
    round_ = round_rows.get(s, round_id)
    if round_.state != RoundState.FROZEN:
        return
    contributors = [row.participant for row in contributions.of_round(s, round_id)]
    refused = dict(error.members.get("refused", {}))
    _refuse(s, round_, refused)
    data = {"detail": error.detail, "contributors": contributors, "refused": refused}
    events.add(s, experiment.id, "round.rolled_back", round=round_.number, data=data)
    miss(s, experiment, round_, error)


def record_evaluation(s: Session, experiment_id: str, number: int, metrics: Mapping[str, float]) -> None:
    """Stores the evaluation of round ``number`` (0: the base model) and requests the next step.

    The first result counts. A repeated one, or one after the experiment's end, changes nothing.
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


def _refuse(s: Session, round_: Round, reasons: Mapping[str, str]) -> None:
    errors = {name: FerretError("contribution.out_of_bounds", why) for name, why in reasons.items()}
    assignments.refuse(s, round_.id, {name: error.to_json() for name, error in errors.items()})
    for name, error in errors.items():
        data = {"participant": name, "code": error.code, "detail": error.detail}
        events.add(s, round_.experiment_id, "contribution.rejected", round=round_.number, data=data)


def miss(s: Session, experiment: Experiment, round_: Round, error: FerretError) -> None:
    """Abandons the attempt. The next one starts from the same model."""
    if round_.attempt >= spec_of(experiment).round.attempts:
        lifecycle.fail(s, experiment.id, error)
        return
    lifecycle.abandon_round(s, round_, error.to_json())
    outbox.add(s, TaskName.COORDINATE, experiment.id)


def _close_dealing(s: Session, experiment: Experiment, round_: Round, time: datetime) -> None:
    """Lets the members of a secure sum train once all have dealt, or enough of them at the stage's end."""
    dealers = secure_sums.senders(s, round_.id, SumStage.DEAL)
    silent = assignments.unfinished_names(s, round_.id) - dealers
    if silent and round_.stage_until is not None and time < round_.stage_until:
        return
    found, needed = _least_filled(secure_sums.rosters_of(s, round_.id), dealers)
    if found < needed:
        reasons = [error["detail"] for error in assignments.errors(s, round_.id)]
        first = f"; the first rejection was: {reasons[0]}" if reasons else ""
        message = f"dealt in attempt {round_.attempt} at round {round_.number}, and the sum needs {needed}{first}"
        error = FerretError.of_field("secure.too_few", "dealers", found, message)
        assignments.reject_some(s, round_.id, silent, error.summary())
        miss(s, experiment, round_, error)
        return
    assignments.expire_some(s, round_.id, silent)
    rounds.enter(s, round_, SumStage.MASK)
    data = {"dealers": len(dealers), "silent": sorted(silent)}
    events.add(s, experiment.id, "round.dealt", round=round_.number, data=data)


def _least_filled(rosters: Sequence[Roster], names: Collection[str]) -> tuple[int, int]:
    """Returns the number of these participants, and that needed, in the group that misses the most."""
    found = [(len({*names} & {*roster.names}), roster.needed) for roster in rosters]
    return min(found, key=lambda each: each[0] - each[1])


def _begin(
    s: Session,
    experiment_id: str,
    number: int,
    deadline_seconds: float,
    bytes_down: int,
    needed: int | None,
    state: RoundState = RoundState.OPEN,
    population: list[str] | None = None,
) -> tuple[Round, bool]:
    experiment = experiments.lock(s, experiment_id)
    last = round_rows.latest(s, experiment_id, number)
    if last is not None and last.state != RoundState.ABANDONED:
        return last, False
    opened_at = clock.now(s)
    round_ = Round(
        experiment_id=experiment_id,
        number=number,
        attempt=1 if last is None else last.attempt + 1,
        state=state,
        base_digest=_base_of_next(experiment, number),
        opened_at=opened_at,
        deadline_at=service_clock.time_ahead(s, opened_at) + timedelta(seconds=deadline_seconds),
        required_contributions=needed,
        population=population,
        bytes_down=bytes_down,
    )
    return round_rows.add(s, round_), True


def _opened(s: Session, round_: Round, deadline_seconds: float, participants: int) -> None:
    deadline_at = round_.opened_at + timedelta(seconds=deadline_seconds)
    data = {"participants": participants, "attempt": round_.attempt, "deadline_at": deadline_at.isoformat()}
    events.add(s, round_.experiment_id, "round.opened", round=round_.number, data=data)
    outbox.touch(s, round_.experiment_id)


def _base_of_next(experiment: Experiment, number: int) -> str:
    if experiment.state != ExperimentState.RUNNING or experiment.digest is None or number != experiment.round + 1:
        raise FerretError(
            "experiment.conflict",
            f"round {number} of {experiment.id} cannot open: the experiment is {experiment.state} "
            f"and round {experiment.round} is its last committed round; run coordinate again",
        )
    return experiment.digest


def _assignment(round_: Round, place: int, what: Task) -> dict[str, Any]:
    """Returns an assignment. Its id sorts by its place: participants drawn first are called first."""
    task, kind, participant_id = what
    first = int(round_.id.removeprefix("rnd_"), 16) >> 1
    return {
        "id": f"asg_{first + place:016x}",
        "experiment_id": round_.experiment_id,
        "round_id": round_.id,
        "round": round_.number,
        "participant": task.participant,
        "kind": kind,
        "participant_id": participant_id,
        "task": task.model_dump(mode="json"),
    }


def _freeze(s: Session, round_: Round) -> bool:
    accepted = contributions.digests_of_round(s, round_.id)
    digest = contributions_digest(accepted)
    frozen = swap(s, round_, RoundState.FROZEN, contributions_digest=digest, frozen_at=clock.utcnow())
    if frozen is None:
        return False
    assignments.expire(s, round_.id)
    data = {"accepted": len(accepted), "contributions_digest": digest}
    events.add(s, round_.experiment_id, "round.frozen", round=round_.number, data=data)
    outbox.withdraw(s, round_.experiment_id, [TaskName.TRAIN])
    if frozen.stage is not None:
        rounds.enter(s, frozen, SumStage.AGREE)
        return True
    outbox.add(s, TaskName.AGGREGATE, round_.id, round_.experiment_id)
    return True
