"""Rounds and their results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, bindparam, func, or_, select, update
from sqlalchemy.orm import Session

from ferret_core.ledger.record import GroupRecord
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState, SumStage
from ferret_db import clock
from ferret_db.pagination import Page, page, seek
from ferret_db.repositories import ledger, metrics, service_clock
from ferret_db.repositories.experiments import LARGE, spec_of
from ferret_db.tables import Assignment, Contribution, Experiment, NoisedSum, Round, Update

STAGE_SECONDS = 600.0
"""Longest time for a stage of a secure sum in which sites only exchange messages."""


class RoundSummary(NamedTuple):
    """A round with its assignments' counts, its points on the curves, and the secure sums in its record."""

    round: Round
    participants: int
    accepted: int
    rejected: int
    metrics: dict[str, float]
    groups: list[GroupRecord]


class TrafficTotals(NamedTuple):
    """Sums of bytes over participants and rounds."""

    up: int
    down: int


def add(s: Session, round_: Round) -> Round:
    s.add(round_)
    s.flush()
    return round_


def get(s: Session, round_id: str) -> Round:
    """Returns the round, or raises ``round.not_found``."""
    found = s.get(Round, round_id, populate_existing=True)
    if found is None:
        raise FerretError.of_field("round.not_found", "round", round_id, "no such round")
    return found


def latest(s: Session, experiment_id: str, number: int | None = None) -> Round | None:
    """Returns the last attempt at round ``number``, or at any round."""
    query = select(Round).where(Round.experiment_id == experiment_id)
    if number is not None:
        query = query.where(Round.number == number)
    query = query.order_by(Round.number.desc(), Round.attempt.desc()).limit(1)
    return s.scalars(query, execution_options={"populate_existing": True}).one_or_none()


def with_latest(s: Session, experiment_ids: Collection[str]) -> dict[str, tuple[Experiment, Round | None]]:
    """Returns those that exist, by id, without large columns, each with the last attempt at its last round."""
    rounds = select(Round.id).where(Round.experiment_id == Experiment.id)
    last = rounds.order_by(Round.number.desc(), Round.attempt.desc()).limit(1).correlate(Experiment).scalar_subquery()
    query = select(Experiment, Round).outerjoin(Round, Round.id == last).where(Experiment.id.in_(experiment_ids))
    found = s.execute(query.options(*LARGE), execution_options={"populate_existing": True})
    return {experiment.id: (experiment, round_) for experiment, round_ in found}


def frozen(s: Session, experiment_id: str) -> Sequence[Round]:
    """Returns the experiment's rounds with a frozen accepted set."""
    found = select(Round).where(Round.experiment_id == experiment_id, Round.contributions_digest.is_not(None))
    return s.scalars(found).all()


def next_attempt(s: Session, experiment_id: str, number: int) -> int:
    """Returns the number of the round's next attempt; the first is 1."""
    last = latest(s, experiment_id, number)
    return 1 if last is None else last.attempt + 1


def attempts(s: Session, experiment_id: str) -> int:
    """Returns the number of attempts at all of the experiment's rounds so far."""
    return s.scalar(select(func.count()).where(Round.experiment_id == experiment_id)) or 0


def giving_work(s: Session, round_ids: Collection[str]) -> set[str]:
    """Returns the open rounds of running experiments: their assignments may be leased."""
    query = (
        select(Round.id)
        .join(Experiment, Experiment.id == Round.experiment_id)
        .where(Round.id.in_(round_ids), Round.state == RoundState.OPEN, Experiment.state == ExperimentState.RUNNING)
    )
    return set(s.scalars(query))


def in_states(s: Session, experiment_id: str, *states: RoundState) -> list[Round]:
    """Returns the experiment's rounds in one of the states, in order."""
    return list(
        s.scalars(
            select(Round)
            .where(Round.experiment_id == experiment_id, Round.state.in_(states))
            .order_by(Round.number, Round.attempt),
            execution_options={"populate_existing": True},
        )
    )


def unevaluated(s: Session, experiment: Experiment) -> list[Round]:
    """Returns the committed rounds with a due (``federation.evaluation_due``) and missing evaluation, in order."""
    due = or_(Round.number % spec_of(experiment).evaluation.every == 0, Round.number == experiment.rounds)
    missing = Round.state == RoundState.COMMITTED, Round.evaluated_at.is_(None)
    query = select(Round).where(Round.experiment_id == experiment.id, *missing, due).order_by(Round.number)
    return list(s.scalars(query, execution_options={"populate_existing": True}))


def arrivals(s: Session, experiment_id: str, count: int) -> list[float]:
    """Returns the seconds from opening to each contribution, over the last ``count`` closed rounds.

    ``inf`` means that an assigned participant did not contribute. Refused and failed assignments are left out.
    """
    closed = Round.state.in_((RoundState.FROZEN, RoundState.COMMITTED, RoundState.ABANDONED))
    last = select(Round.id).where(Round.experiment_id == experiment_id, closed)
    recent = s.scalars(last.order_by(Round.number.desc(), Round.attempt.desc()).limit(count)).all()
    ended = Assignment.state.in_((AssignmentState.ACCEPTED, AssignmentState.EXPIRED))
    times = s.execute(
        select(Round.opened_at, Contribution.created_at)
        .join(Assignment, Assignment.round_id == Round.id)
        .outerjoin(Contribution, Contribution.assignment_id == Assignment.id)
        .where(Round.id.in_(recent), ended)
    )
    return [_seconds_between(opened, came) for opened, came in times]


def stop_clock(s: Session, round_: Round) -> None:
    """Stores the remaining time to the open round's deadline."""
    _change(s, round_, paused_seconds_left=(round_.deadline_at - service_clock.time_ahead(s)).total_seconds())


def start_clock(s: Session, round_: Round) -> None:
    """Sets the open round's deadline from the stored remaining time."""
    left = round_.paused_seconds_left or 0
    deadline_at = service_clock.time_ahead(s) + timedelta(seconds=left)
    _change(s, round_, deadline_at=deadline_at, paused_seconds_left=None)
    if round_.stage == SumStage.DEAL:
        restart_stage(s, round_, dealing_seconds(left))


def dealing_seconds(deadline_seconds: float) -> float:
    """Returns the time for the deals of a secure sum: a quarter of the round's, at most ``STAGE_SECONDS``."""
    return min(STAGE_SECONDS, deadline_seconds / 4)


def restart_stage(s: Session, round_: Round, seconds: float) -> None:
    """Lets the round's stage end ``seconds`` from now."""
    _change(s, round_, stage_until=service_clock.time_ahead(s) + timedelta(seconds=seconds))


def enter(s: Session, round_: Round, stage: SumStage) -> None:
    """Moves a secure sum to the stage, of at most ``STAGE_SECONDS``. The round's new version wakes its participants."""
    until = service_clock.time_ahead(s) + timedelta(seconds=STAGE_SECONDS)
    _change(s, round_, stage=stage, stage_until=until, version=Round.version + 1)
    s.refresh(round_)


def add_bytes_up(s: Session, round_: Round, size: int) -> None:
    """Adds to the bytes that the round's participants sent."""
    _change(s, round_, bytes_up=Round.bytes_up + size)


def count_bytes_up(s: Session, uploads: Sequence[Contribution]) -> None:
    """Adds the uploads' bytes to their rounds' sums."""
    sums = Counter[str]()
    for upload in uploads:
        sums[upload.round_id] += upload.size
    s.connection().execute(
        update(Round).where(Round.id == bindparam("grown")).values(bytes_up=Round.bytes_up + bindparam("by")),
        [{"grown": round_id, "by": size} for round_id, size in sums.items()],
    )


def evaluated(s: Session, experiment_id: str, number: int) -> None:
    """Records when the committed round was evaluated."""
    s.execute(
        update(Round)
        .where(Round.experiment_id == experiment_id, Round.number == number, Round.state == RoundState.COMMITTED)
        .values(evaluated_at=clock.utcnow())
    )


def list_page(s: Session, experiment_id: str, limit: int, cursor: str | None = None) -> Page[RoundSummary]:
    """Lists the experiment's rounds in order, every attempt."""
    query = _counted().where(Round.experiment_id == experiment_id)
    rows = s.execute(seek(query, (Round.number, Round.attempt), cursor, limit)).all()
    found = page(rows, limit, lambda row: (row[0].number, row[0].attempt))
    return Page(_summaries(s, experiment_id, found.items), found.next_cursor)


def summary(s: Session, experiment_id: str, number: int) -> RoundSummary:
    """Returns the last attempt at round ``number``, or raises ``round.not_found``."""
    query = _counted().where(Round.experiment_id == experiment_id, Round.number == number)
    row = s.execute(query.order_by(Round.attempt.desc()).limit(1)).one_or_none()
    if row is None:
        raise FerretError.of_field("round.not_found", "round", number, f"not opened yet in {experiment_id}")
    return _summaries(s, experiment_id, [row])[0]


def bytes_by_experiment(s: Session, experiment_ids: Sequence[str]) -> dict[str, TrafficTotals]:
    """Sums the bytes that participants sent and received, by experiment."""
    sums = s.execute(
        select(Round.experiment_id, func.sum(Round.bytes_up), func.sum(Round.bytes_down))
        .where(Round.experiment_id.in_(experiment_ids))
        .group_by(Round.experiment_id)
    )
    found = {experiment_id: TrafficTotals(int(up), int(down)) for experiment_id, up, down in sums}
    return {experiment_id: found.get(experiment_id, TrafficTotals(0, 0)) for experiment_id in experiment_ids}


def count_by_state(s: Session) -> dict[RoundState, int]:
    query = select(Round.state, func.count()).group_by(Round.state)
    return dict(s.execute(query).all())


def _change(s: Session, round_: Round, **values: Any) -> None:
    """Updates columns of the round other than its state. The caller has locked the experiment."""
    s.execute(update(Round).where(Round.id == round_.id).values(**values))


def _seconds_between(opened: datetime, came: datetime | None) -> float:
    return math.inf if came is None else max(0.0, (came - opened).total_seconds())


def _counted() -> Select[Round, int, int, int]:
    def count(state: AssignmentState) -> ColumnElement[int]:
        return func.count(Assignment.id).filter(Assignment.state == state)

    return (
        select(Round, func.count(Assignment.id), count(AssignmentState.ACCEPTED), count(AssignmentState.REJECTED))
        .outerjoin(Assignment, Assignment.round_id == Round.id)
        .group_by(Round.id)
    )


def _summaries(s: Session, experiment_id: str, rows: Sequence[Row[Round, int, int, int]]) -> list[RoundSummary]:
    committed = {round_.number: round_ for round_, *_ in rows if round_.state == RoundState.COMMITTED}
    points = metrics.by_round(s, experiment_id, [*committed])
    summed = [number for number, each in committed.items() if each.stage is not None]
    sums = {committed[number].id: groups for number, groups in ledger.groups(s, experiment_id, summed).items()}
    return [
        RoundSummary(round_, participants, accepted, rejected, points.get(round_.number, {}), sums.get(round_.id, []))
        for round_, participants, accepted, rejected in rows
    ]


def add_update_statistics(s: Session, experiment_id: str, round: int, statistics: Mapping[str, Any]) -> None:
    s.add(Update(experiment_id=experiment_id, round=round, statistics=dict(statistics)))
    s.flush()


def update_statistics(s: Session, experiment_id: str, round: int) -> dict[str, Any]:
    """Returns the statistics of a committed round."""
    return s.get_one(Update, (experiment_id, round)).statistics


def add_noised_sum(s: Session, round_: Round, body: bytes) -> None:
    s.add(NoisedSum(round_id=round_.id, experiment_id=round_.experiment_id, body=body))
    s.flush()


def noised_sum(s: Session, round_id: str) -> bytes | None:
    """Returns the round's sum with the server's noise, packed; None before its first aggregation."""
    return s.scalar(select(NoisedSum.body).where(NoisedSum.round_id == round_id))
