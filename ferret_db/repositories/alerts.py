"""Alerts of projects, and their queued messages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select, update
from sqlalchemy import delete as deleted
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.alerts import AlertEvent, AlertKind
from ferret_db import clock
from ferret_db.tables import Alert, AlertDelivery, Experiment

KEPT = timedelta(days=30)
"""Retention of sent messages."""
TRIED_FOR = timedelta(days=1)
"""Maximum age of a message: an older one is given up at the next failure."""
MOST_WAITING = 100
"""Maximum queued messages per alert. A newer one replaces the oldest."""
AT_A_TURN = 2
"""Maximum messages of one project that are sent simultaneously."""


class Claimed(NamedTuple):
    """A message that this process must send now, and its address."""

    delivery: AlertDelivery
    alert: Alert


def add(
    s: Session,
    project: str,
    kind: AlertKind,
    address: str,
    events: Sequence[AlertEvent],
    secret: str | None,
    experiment_id: str | None = None,
) -> Alert:
    """Creates an alert for all experiments of the project, or for one of them."""
    alert = Alert(
        project=project, kind=kind, address=address, events=[*events], secret=secret, experiment_id=experiment_id
    )
    s.add(alert)
    s.flush()
    return alert


def get(s: Session, project: str, alert_id: str) -> Alert:
    """Returns the project's alert, or raises ``alert.not_found``."""
    found = s.scalars(select(Alert).where(Alert.id == alert_id, Alert.project == project)).one_or_none()
    if found is None:
        reason = f"no such alert of {project}; see `ferret alert list`"
        raise FerretError.of_field("alert.not_found", "alert", alert_id, reason)
    return found


def of_project(s: Session, project: str) -> list[Alert]:
    """Returns the project's alerts, oldest first."""
    return list(s.scalars(select(Alert).where(Alert.project == project).order_by(Alert.created_at, Alert.id)))


def count(s: Session, project: str) -> int:
    """Counts the project's alerts."""
    return s.scalars(select(func.count()).select_from(Alert).where(Alert.project == project)).one()


def of_experiment(s: Session, experiment_id: str) -> list[Alert]:
    """Returns the alerts of this experiment alone."""
    return list(s.scalars(select(Alert).where(Alert.experiment_id == experiment_id)))


def about(s: Session, experiment: Experiment) -> list[Alert]:
    """Returns the enabled alerts that cover the experiment, oldest first."""
    of_it = or_(Alert.experiment_id.is_(None), Alert.experiment_id == experiment.id)
    told = Alert.project == experiment.project, Alert.enabled, of_it
    return list(s.scalars(select(Alert).where(*told).order_by(Alert.created_at, Alert.id)))


def wanted(s: Session, event: AlertEvent) -> bool:
    """Returns True if an alert covers such events."""
    return any(event in events for events in s.scalars(select(Alert.events).where(Alert.enabled)))


def switch(s: Session, alert_id: str, *, enabled: bool) -> Alert:
    """Enables or disables the alert. Disabling drops queued messages."""
    if not enabled:
        _give_up(s, AlertDelivery.alert_id == alert_id, "the alert was switched off")
    return s.scalars(
        update(Alert).where(Alert.id == alert_id).values(enabled=enabled).returning(Alert),
        execution_options={"populate_existing": True},
    ).one()


def delete(s: Session, alert_id: str) -> None:
    """Deletes the alert with all its messages, sent or not."""
    s.execute(deleted(AlertDelivery).where(AlertDelivery.alert_id == alert_id))
    s.execute(deleted(Alert).where(Alert.id == alert_id))


def enqueue(s: Session, told: Sequence[Alert], event: str, message: dict[str, Any]) -> list[AlertDelivery]:
    """Queues the same message for each alert, due immediately.

    It replaces old messages: finished ones, and the oldest queued one of an alert that has :data:`MOST_WAITING`, which
    is given up.
    """
    now = clock.now(s)
    ids = [alert.id for alert in told]
    over = AlertDelivery.alert_id.in_(ids), AlertDelivery.due_at.is_(None), AlertDelivery.created_at < now - KEPT
    s.execute(deleted(AlertDelivery).where(*over))
    rows = [
        AlertDelivery(alert_id=alert.id, project=alert.project, event=event, message=message, due_at=now)
        for alert in told
    ]
    s.add_all(rows)
    s.flush()
    for alert in told:
        _give_up(s, AlertDelivery.id.in_(_excess(alert.id)), f"more than {MOST_WAITING} messages waited to be sent")
    return rows


def _excess(alert_id: str) -> Select[tuple[str]]:
    """Selects the ids of the alert's queued messages except the newest :data:`MOST_WAITING`."""
    age = func.row_number().over(order_by=(AlertDelivery.created_at.desc(), AlertDelivery.id.desc()))
    waiting = AlertDelivery.alert_id == alert_id, AlertDelivery.due_at.is_not(None)
    ranked = select(AlertDelivery.id, age.label("age")).where(*waiting).subquery()
    return select(ranked.c.id).where(ranked.c.age > MOST_WAITING)


def _give_up(s: Session, which: ColumnElement[bool], error: str | None) -> None:
    s.execute(update(AlertDelivery).where(which, AlertDelivery.due_at.is_not(None)).values(due_at=None, error=error))


def recent(s: Session, alert_id: str, limit: int) -> list[AlertDelivery]:
    """Returns the newest messages of the alert."""
    query = select(AlertDelivery).where(AlertDelivery.alert_id == alert_id)
    query = query.order_by(AlertDelivery.created_at.desc(), AlertDelivery.id)
    return list(s.scalars(query.limit(limit)))


def due(s: Session) -> bool:
    """Returns True if a message is due."""
    return s.scalars(select(AlertDelivery.id).where(AlertDelivery.due_at <= clock.now(s)).limit(1)).first() is not None


def claim(s: Session, limit: int, seconds: float, busy: Collection[str] = ()) -> list[Claimed]:
    """Claims due messages and counts the attempt.

    Projects take turns: each gets at most :data:`AT_A_TURN`, longest due first, and the ``busy`` ones get none. Unless
    :func:`renew` prolongs the claim or :func:`settle` records the result, the messages are due again after ``seconds``:
    the claiming process is gone.
    """
    now = clock.now(s)
    is_due = AlertDelivery.due_at <= now
    order = AlertDelivery.due_at, AlertDelivery.created_at, AlertDelivery.id
    turn = func.row_number().over(partition_by=AlertDelivery.project, order_by=order).label("turn")
    waiting = is_due, AlertDelivery.project.not_in(busy)
    ranked = select(AlertDelivery.id, AlertDelivery.due_at, turn).where(*waiting).subquery()
    first = select(ranked.c.id).where(ranked.c.turn <= AT_A_TURN).order_by(ranked.c.turn, ranked.c.due_at).limit(limit)
    taken = s.scalars(
        update(AlertDelivery)
        .where(AlertDelivery.id.in_(first), is_due)
        .values(due_at=now + timedelta(seconds=seconds), attempts=AlertDelivery.attempts + 1, tried_at=now)
        .returning(AlertDelivery),
        execution_options={"populate_existing": True},
    ).all()
    ids = {delivery.alert_id for delivery in taken}
    known = {alert.id: alert for alert in s.scalars(select(Alert).where(Alert.id.in_(ids)))}
    return [Claimed(delivery, known[delivery.alert_id]) for delivery in taken]


def renew(s: Session, delivery_ids: Collection[str], seconds: float) -> None:
    """Prolongs the claims of attempts under way to ``seconds`` from now."""
    kept = AlertDelivery.id.in_(delivery_ids), AlertDelivery.due_at.is_not(None)
    s.execute(update(AlertDelivery).where(*kept).values(due_at=clock.now(s) + timedelta(seconds=seconds)))


def settle(
    s: Session, delivery: AlertDelivery, *, status: int | None, error: str | None, again_seconds: float | None
) -> None:
    """Records the result of an attempt: delivered if ``error`` is None, otherwise due again or given up.

    After a failure the message is due again after ``again_seconds``, and the alert's other messages wait as long: a
    dead address is tried once for all of them. A message is given up after :data:`TRIED_FOR`.
    """
    now = clock.now(s)
    due_at = None if error is None or again_seconds is None else now + timedelta(seconds=again_seconds)
    # If this one took too long, another attempt may have begun meanwhile, which is the one that counts.
    same = AlertDelivery.id == delivery.id, AlertDelivery.attempts == delivery.attempts
    # A message that was given up during the attempt, as for a disabled alert, stays so.
    kept = case((AlertDelivery.due_at.is_not(None), due_at), else_=None)
    s.execute(
        update(AlertDelivery)
        .where(*same)
        .values(status=status, error=error, due_at=kept, delivered_at=now if error is None else None)
    )
    if error is None:
        return
    of_alert = AlertDelivery.alert_id == delivery.alert_id
    _give_up(s, and_(of_alert, AlertDelivery.created_at < now - TRIED_FOR), error)
    if due_at is not None:
        s.execute(update(AlertDelivery).where(of_alert, AlertDelivery.due_at < due_at).values(due_at=due_at))
