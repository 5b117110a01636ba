"""Detection of experiments that cannot make progress, computed on every call from the workers' last heartbeats."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_core.protocol.errors import PROBLEMS
from ferret_core.protocol.resources.alerts import AlertEvent
from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_core.protocol.task_names import Queue
from ferret_db import clock
from ferret_db.database import Database
from ferret_db.engine.alerts import announce
from ferret_db.engine.secure_sums import next_groups
from ferret_db.engine.task_attempts import TRANSIENT
from ferret_db.engine.wait_reason import required
from ferret_db.repositories import (
    alerts,
    assignments,
    experiments,
    participants,
    rounds,
    secure_sums,
    service_clock,
    task_runs,
    workers,
)
from ferret_db.repositories.workers import GONE_SECONDS
from ferret_db.tables import Experiment

BROKER_SECONDS = 5.0
"""Seconds of the broker's silence that do not count: it may be starting."""


class Stall(NamedTuple):
    """The reason that an experiment has stalled, the remedy, and the time since when."""

    code: str
    detail: str
    since: datetime


def stall(s: Session, experiment: Experiment) -> Stall | None:
    """Returns the missing condition of a queued or running experiment, or None while something can move it."""
    if experiment.state not in {ExperimentState.QUEUED, ExperimentState.RUNNING}:
        return None
    return (
        _no_aggregation_worker(s, experiment)
        or _no_broker(s)
        or _no_training_worker(s, experiment)
        or _participants_missing(s, experiment)
        or _sum_impossible(s, experiment)
        or _held_up(s, experiment)
    )


def _no_aggregation_worker(s: Session, experiment: Experiment) -> Stall | None:
    since = _missing_since(s, Queue.AGGREGATE, experiment.created_at)
    if since is None:
        return None
    detail = "no aggregation worker is running; start one with ferret worker aggregate, or all with ferret serve"
    return Stall("aggregation_worker.missing", detail, since)


def _no_broker(s: Session) -> Stall | None:
    since = service_clock.broker_silent_since(s)
    if since is None or (clock.now(s) - since).total_seconds() < BROKER_SECONDS:
        return None
    detail = (
        PROBLEMS["broker.missing"].title
        + ": start it again, or end it if it hangs; see FERRET_BROKER_URL and ferret doctor"
    )
    return Stall("broker.missing", detail, since)


def _no_training_worker(s: Session, experiment: Experiment) -> Stall | None:
    opened_at = assignments.untrained_since(s, experiment.id)
    since = None if opened_at is None else _missing_since(s, Queue.TRAIN, opened_at)
    if since is None:
        return None
    detail = "simulated clients are waiting and no training worker is running; start one with ferret worker train"
    return Stall("training_worker.missing", detail, since)


def _participants_missing(s: Session, experiment: Experiment) -> Stall | None:
    wanted = required(s, experiment)
    if not wanted or experiment.started_at is None or _is_under_way(s, experiment):
        return None
    joined = participants.count(s, experiment.id)
    if joined >= wanted:
        return None
    first = rounds.latest(s, experiment.id) is None
    needs = "a participant" if wanted == 1 else f"{wanted} participants"
    when = "round 1 starts when all have" if first else f"the others were revoked, and a round needs {needs}"
    so_far = f"{joined} of {wanted} real participants have joined; {when}"
    invite = f"invite the others with ferret code create {experiment.id}"
    detail = f"{so_far}; {_pending(s, experiment) or invite}"
    return Stall("participants.missing", detail, _last_change(s, experiment, experiment.started_at))


def _sum_impossible(s: Session, experiment: Experiment) -> Stall | None:
    """Returns the stall of a secure sum with too few sites that have one-time keys."""
    spec = experiments.spec_of(experiment)
    if not spec.secure.masked or experiment.started_at is None or _is_under_way(s, experiment):
        return None
    number, joined = experiment.round + 1, {site.name for site in participants.of_experiment(s, experiment.id)}
    able = secure_sums.stocked(s, experiment.id).keys()
    if next_groups(s, experiment, able):
        return None
    if without := sorted(joined - able):
        remedy = f"no one-time keys are left of {', '.join(without)}: run ferret join there again"
    else:
        remedy = (
            "its members have signed an undone sum, and too few of them are left to repeat it: clone the experiment"
        )
    last = rounds.latest(s, experiment.id)
    ended = experiment.started_at if last is None else last.committed_at or last.opened_at
    since = max(ended, _last_change(s, experiment, experiment.started_at))
    if (clock.now(s) - since).total_seconds() <= GONE_SECONDS:
        return None  # the sites may be sending keys
    return Stall("participants.missing", f"round {number} is a secure sum, and {remedy}", since)


def _last_change(s: Session, experiment: Experiment, started_at: datetime) -> datetime:
    """Returns the time when a participant last joined or was revoked, at least the start."""
    ever = participants.ever_of_experiment(s, experiment.id)
    return max([started_at, *(site.revoked_at or site.created_at for site in ever)])


def _pending(s: Session, experiment: Experiment) -> str | None:
    pending = participants.count_pending(s, experiment.id)
    if not pending:
        return None
    who = "1 waits" if pending == 1 else f"{pending} wait"
    return f"{who} to be approved: ferret participant list {experiment.id}, then ferret participant approve"


def _is_under_way(s: Session, experiment: Experiment) -> bool:
    return experiment.round == experiment.rounds or bool(
        rounds.in_states(s, experiment.id, RoundState.OPENING, RoundState.OPEN, RoundState.FROZEN)
    )


def _held_up(s: Session, experiment: Experiment) -> Stall | None:
    """Returns the stall of a task that fails because of its environment, e.g. a full disk."""
    for run in task_runs.failing(s, experiment.id):
        if run.error is not None and run.error["code"] in TRANSIENT:
            return Stall(run.error["code"], run.error["detail"], run.created_at)
    return None


def _missing_since(s: Session, queue: Queue, wanted_at: datetime) -> datetime | None:
    since = max(wanted_at, workers.last_seen(s, queue) or wanted_at)
    return since if (clock.now(s) - since).total_seconds() > GONE_SECONDS else None


def announce_stalls(database: Database, seconds: float) -> None:
    """Reports every experiment that has stalled for ``seconds``, once until it moves again."""
    with database.read() as s:
        if not alerts.wanted(s, AlertEvent.STALLED):
            return
        changed = [row.id for row in experiments.unfinished(s) if _is_news(s, row, seconds)]
    for experiment_id in changed:
        with database.begin() as s:
            row = experiments.lock(s, experiment_id)
            if not _is_news(s, row, seconds):
                continue
            found = stall(s, row)
            experiments.change(s, experiment_id, stall_alerted_at=clock.utcnow() if found else None)
            if found:
                announce(s, row, AlertEvent.STALLED, found.detail)


def _is_news(s: Session, experiment: Experiment, seconds: float) -> bool:
    """Returns True if it has stalled and no alert was sent, or moves again after one was sent."""
    found = stall(s, experiment)
    if found is None:
        return experiment.stall_alerted_at is not None
    return experiment.stall_alerted_at is None and (clock.now(s) - found.since).total_seconds() >= seconds
