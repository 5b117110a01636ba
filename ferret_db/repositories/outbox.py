"""Task calls: rows that commit with the change that needs the task, handed to the broker in turn.

A task and its argument have at most one row. It waits, is at the broker, and is taken by a worker. Of each experiment
at most one row per queue is at the broker, and of trainings as many as its priority. So the queues stay short whatever
the workload, and experiments take turns. Trainings have no row while they wait: a pending assignment is the call.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import starmap
from typing import NamedTuple, cast

from sqlalchemy import (
    ColumnElement,
    Integer,
    ScalarSelect,
    SQLColumnExpression,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, aliased

from ferret_core.protocol.states import AssignmentState, ExperimentState, ParticipantKind, RoundState
from ferret_core.protocol.task_names import QUEUE_OF, Queue, TaskName
from ferret_db import clock
from ferret_db.statements import upsert
from ferret_db.tables import Assignment, Experiment, OutboxMessage, Round, Worker

BATCH = 200
"""Maximum rows that one transaction of a sweep writes."""
_TOUCHED = "ferret_outbox"
_AT_BROKER = and_(OutboxMessage.sent_at.is_not(None), OutboxMessage.received_at.is_(None))
_WAITING = and_(OutboxMessage.sent_at.is_(None), OutboxMessage.received_at.is_(None))


def add(s: Session, task: TaskName, argument: str, experiment_id: str | None = None) -> None:
    """Adds a call of a task. ``argument`` is the experiment by default. A waiting call is not duplicated."""
    experiment_id = experiment_id or argument
    row = upsert(s, OutboxMessage).values(
        task=task,
        argument=argument,
        queue=QUEUE_OF[task],
        experiment_id=experiment_id,
        created_at=clock.utcnow(),
        attempts=0,
    )
    again = {"created_at": row.excluded.created_at, "sent_at": None, "received_at": None, "attempts": 0}
    taken = OutboxMessage.received_at.is_not(None)
    s.execute(row.on_conflict_do_update(index_elements=["task", "argument"], set_=again, where=taken))
    touch(s, experiment_id)


def touch(s: Session, experiment_id: str) -> None:
    """Makes ``Database.begin`` hand over the experiment's due messages after the commit."""
    cast(set[str], s.info.setdefault(_TOUCHED, set[str]())).add(experiment_id)


def touched(s: Session) -> set[str]:
    """Returns the experiments of this session's calls."""
    return set(cast(set[str], s.info.get(_TOUCHED, set[str]())))


def take(s: Session, task: TaskName, argument: str) -> datetime | None:
    """Marks the message as taken. Returns when it was sent, or None if no row waits for it."""
    waited = OutboxMessage.task == task, OutboxMessage.argument == argument, OutboxMessage.received_at.is_(None)
    taken = s.execute(
        update(OutboxMessage)
        .where(*waited)
        .values(received_at=clock.utcnow())
        .returning(OutboxMessage.experiment_id, OutboxMessage.sent_at)
    ).one_or_none()
    if taken is None:
        return None
    touch(s, taken.experiment_id)
    return taken.sent_at


def waits(s: Session, task: TaskName, argument: str, seconds: float) -> bool:
    """Returns True if such a call waits, or was taken within the last ``seconds``."""
    return bool(s.scalar(select(called(s, task, argument, seconds))))


def called(s: Session, task: TaskName, argument: str | ColumnElement[str], seconds: float) -> ColumnElement[bool]:
    """Returns :func:`waits` as a condition for an ``argument`` that may be another table's column."""
    recent = OutboxMessage.received_at > clock.now(s) - timedelta(seconds=seconds)
    same = OutboxMessage.argument == argument, OutboxMessage.task == task
    return exists().where(*same, or_(OutboxMessage.received_at.is_(None), recent))


def drop(s: Session, task: TaskName, argument: str) -> None:
    """Deletes the call: the task's start is recorded elsewhere."""
    same = OutboxMessage.task == task, OutboxMessage.argument == argument
    s.execute(delete(OutboxMessage).where(*same))


def withdraw(s: Session, experiment_id: str, tasks: Collection[TaskName]) -> None:
    """Deletes the experiment's calls of these tasks, except those at the broker, which still use their place."""
    calls = OutboxMessage.experiment_id == experiment_id, OutboxMessage.task.in_(tasks), ~_AT_BROKER
    s.execute(delete(OutboxMessage).where(*calls))


def due(s: Session, experiments: Collection[str], places: int) -> bool:
    """Returns True if :func:`claim` would find a message."""
    return bool(_calls(s, experiments) or _trainings(s, experiments) or _admitted(s, places))


def claim(s: Session, experiments: Collection[str], places: int) -> list[OutboxMessage]:
    """Claims the messages to hand to the broker now, and marks them as sent.

    These are the next message of each queue of these experiments, and the messages that start the next experiments. At
    most ``places`` simulated experiments run simultaneously, by priority and then submission. An experiment with real
    participants takes no place.
    """
    sent = _send(s, _calls(s, experiments))
    return sent + _send_trainings(s, experiments) + _send(s, _admitted(s, places))


def unclaim(s: Session, messages: Sequence[OutboxMessage]) -> None:
    """Returns messages that the broker did not accept to the waiting state."""
    ids = [message.id for message in messages]
    s.execute(update(OutboxMessage).where(OutboxMessage.id.in_(ids), _AT_BROKER).values(sent_at=None))


def idle(s: Session, older_than: float) -> Sequence[str]:
    """Returns experiments with a call not handed over for ``older_than`` seconds although its place is free."""
    old = OutboxMessage.created_at < clock.now(s) - timedelta(seconds=older_than)
    waiting = (
        select(OutboxMessage.experiment_id)
        .outerjoin(Experiment, Experiment.id == OutboxMessage.experiment_id)
        .where(_WAITING, old, startable(), ~_occupied(OutboxMessage.experiment_id, OutboxMessage.queue))
    )
    untrained = (
        select(Round.experiment_id)
        .join(Experiment, Experiment.id == Round.experiment_id)
        .where(Round.state == RoundState.OPEN, Experiment.state == ExperimentState.RUNNING)
        .where(exists().where(Assignment.round_id == Round.id, *uncalled()))
        .where(~_occupied(Round.experiment_id, Queue.TRAIN))
    )
    return s.scalars(waiting.union(untrained)).all()


def lost(s: Session, older_than: float, overtaken: float, drained: Collection[Queue]) -> Sequence[int]:
    """Returns the ids of a batch of messages that the broker has lost.

    They were sent more than ``older_than`` seconds ago and no worker took them, although their queue is ``drained`` or
    a worker took one that was sent ``overtaken`` seconds later.
    """
    gone: list[ColumnElement[bool]] = [OutboxMessage.queue == queue for queue in drained]
    for queue, newest in s.execute(select(Worker.queue, func.max(Worker.message_sent_at)).group_by(Worker.queue)):
        if newest is not None:
            before = OutboxMessage.sent_at < newest - timedelta(seconds=overtaken)
            gone.append(and_(OutboxMessage.queue == queue, before))
    if not gone:
        return []
    old = OutboxMessage.sent_at < clock.now(s) - timedelta(seconds=older_than)
    return s.scalars(select(OutboxMessage.id).where(_AT_BROKER, old, or_(*gone)).limit(BATCH)).all()


def recall(s: Session, ids: Sequence[int]) -> None:
    """Returns lost messages to the waiting state. A training's call is deleted: its assignment shows if it is due."""
    these = OutboxMessage.id.in_(ids), _AT_BROKER
    for experiment_id in s.scalars(select(OutboxMessage.experiment_id).where(*these).distinct()):
        touch(s, experiment_id)
    trainings = delete(OutboxMessage).where(*these, OutboxMessage.task == TaskName.TRAIN)
    s.execute(trainings)
    s.execute(update(OutboxMessage).where(*these).values(sent_at=None))


def spent(s: Session, seconds: float, training_seconds: float) -> Sequence[int]:
    """Returns the ids of a batch of calls that were taken more than ``seconds`` ago.

    A training's call is spent after ``training_seconds``. If it had no result, its assignment is called again.
    """
    now = clock.now(s)
    training = and_(
        OutboxMessage.task == TaskName.TRAIN, OutboxMessage.received_at < now - timedelta(seconds=training_seconds)
    )
    old = OutboxMessage.received_at < now - timedelta(seconds=seconds)
    return s.scalars(select(OutboxMessage.id).where(or_(old, training)).limit(BATCH)).all()


def forget(s: Session, ids: Sequence[int]) -> None:
    """Deletes these calls, unless they were renewed meanwhile."""
    these = OutboxMessage.id.in_(ids), OutboxMessage.received_at.is_not(None)
    gone = delete(OutboxMessage).where(*these).returning(OutboxMessage.experiment_id)
    for experiment_id in s.scalars(gone):
        touch(s, experiment_id)


def _calls(s: Session, experiments: Collection[str]) -> list[int]:
    first = dict[tuple[str, Queue], int]()
    for experiment_id, queue, call in s.execute(_CALLS, {"experiments": list(experiments)}):
        first.setdefault((experiment_id, queue), call)
    return list(first.values())


class _Training(NamedTuple):
    """An assignment for our own workers, and the number of its experiment's trainings that may go to the broker."""

    experiment_id: str
    assignment_id: str
    places: int


def _trainings(s: Session, experiments: Collection[str]) -> list[_Training]:
    found = starmap(_Training, s.execute(_TRAININGS, {"experiments": list(experiments)}))
    return [training for training in found if training.assignment_id]


def _admitted(s: Session, places: int) -> list[int]:
    """Returns the ids of the calls that start the next queued experiments."""
    taken = [s.scalar(query) or 0 for query in (_UNDER_WAY, _RUNNING)]
    free = max(0, min(places - sum(taken), BATCH))
    admitted = list(s.scalars(_NEXT_SIMULATED, {"free": free})) if free else []
    return admitted + list(s.scalars(_NEXT_REAL))


def _send(s: Session, ids: Sequence[int]) -> list[OutboxMessage]:
    if not ids:
        return []
    # An attempt is counted before it is made, so that one that kills its process counts too.
    sent = (
        update(OutboxMessage)
        .where(OutboxMessage.id.in_(ids), _WAITING)
        .values(sent_at=clock.utcnow(), attempts=OutboxMessage.attempts + 1)
        .returning(OutboxMessage)
    )
    options = {"populate_existing": True}
    return sorted(s.scalars(sent, execution_options=options), key=lambda message: message.id)


def _send_trainings(s: Session, experiments: Collection[str]) -> list[OutboxMessage]:
    """Sends the next training of each, until all places are taken or none is left."""
    sent = list[OutboxMessage]()
    while experiments and (trainings := _trainings(s, experiments)):
        sent += _sent(s, trainings)
        experiments = [training.experiment_id for training in trainings if training.places > 1]
    return sent


def _sent(s: Session, trainings: Sequence[_Training]) -> list[OutboxMessage]:
    sent = list[OutboxMessage]()
    for experiment_id, argument, _ in trainings:
        row = upsert(s, OutboxMessage).values(
            task=TaskName.TRAIN,
            argument=argument,
            queue=QUEUE_OF[TaskName.TRAIN],
            experiment_id=experiment_id,
            created_at=clock.utcnow(),
            sent_at=clock.utcnow(),
            attempts=1,
        )
        sent += s.scalars(row.on_conflict_do_nothing().returning(OutboxMessage))
    return sent


def startable() -> ColumnElement[bool]:
    """Returns the condition that a call does not start a queued experiment; :func:`claim` handles the starts."""
    queued = Experiment.state.is_not_distinct_from(ExperimentState.QUEUED)
    return ~and_(queued, OutboxMessage.task == TaskName.COORDINATE)


def uncalled() -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions of assignments that wait for our own workers without a call."""
    call = exists().where(OutboxMessage.task == TaskName.TRAIN, OutboxMessage.argument == Assignment.id)
    pending = Assignment.state == AssignmentState.PENDING
    return pending, Assignment.kind == ParticipantKind.SIMULATED, ~call


def _occupied(
    experiment_id: SQLColumnExpression[str], queue: Queue | SQLColumnExpression[Queue]
) -> ColumnElement[bool]:
    return exists().where(*_ahead(experiment_id, queue))


def _at_broker(experiment_id: SQLColumnExpression[str], queue: Queue) -> ScalarSelect[int]:
    return select(func.count()).where(*_ahead(experiment_id, queue)).scalar_subquery()


def _ahead(
    experiment_id: SQLColumnExpression[str], queue: Queue | SQLColumnExpression[Queue]
) -> tuple[ColumnElement[bool], ...]:
    ahead = aliased(OutboxMessage)
    at_broker = ahead.sent_at.is_not(None), ahead.received_at.is_(None)
    return ahead.experiment_id == experiment_id, ahead.queue == queue, *at_broker


# These queries run at every change that calls a task. Building them takes longer than running them.
_EXPERIMENTS = bindparam("experiments", expanding=True)
_CALLS = (
    select(OutboxMessage.experiment_id, OutboxMessage.queue, OutboxMessage.id)
    .outerjoin(Experiment, Experiment.id == OutboxMessage.experiment_id)
    .where(OutboxMessage.experiment_id.in_(_EXPERIMENTS), _WAITING, startable())
    .where(~_occupied(OutboxMessage.experiment_id, OutboxMessage.queue))
    .order_by(OutboxMessage.created_at, OutboxMessage.id)
)
_FOLLOWING = select(Assignment.id).where(Assignment.round_id == Round.id, *uncalled()).order_by(Assignment.id).limit(1)
_PLACES = Experiment.priority - _at_broker(Round.experiment_id, Queue.TRAIN)
_TRAININGS = (
    select(Round.experiment_id, _FOLLOWING.correlate(Round).scalar_subquery(), _PLACES)
    .join(Experiment, Experiment.id == Round.experiment_id)
    .where(Round.experiment_id.in_(_EXPERIMENTS), Round.state == RoundState.OPEN)
    .where(Experiment.state == ExperimentState.RUNNING, _PLACES > 0)
)
_SIMULATED = Experiment.edge_participants == 0
_STARTING = (
    select(OutboxMessage.id)
    .join(Experiment, Experiment.id == OutboxMessage.experiment_id)
    .where(OutboxMessage.task == TaskName.COORDINATE, Experiment.state == ExperimentState.QUEUED)
)
_UNDER_WAY = select(func.count()).select_from(
    _STARTING.where(_SIMULATED, OutboxMessage.sent_at.is_not(None)).subquery()
)
_RUNNING = select(func.count(Experiment.id)).where(Experiment.state == ExperimentState.RUNNING, _SIMULATED)
# Within the same moment, a millisecond in SQLite, the first call wins.
_NEXT = _STARTING.where(_WAITING).order_by(Experiment.priority.desc(), Experiment.created_at, OutboxMessage.id)
_NEXT_SIMULATED = _NEXT.where(_SIMULATED).limit(bindparam("free", type_=Integer))
_NEXT_REAL = _NEXT.where(Experiment.edge_participants > 0).limit(BATCH)
