"""Queues alert messages in the transaction of the event that they report."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from ferret_core.protocol.resources.alerts import ALERT_VERSION, AlertEvent
from ferret_db import clock
from ferret_db.repositories import alerts, metrics
from ferret_db.tables import Alert, AlertDelivery, Experiment

TEST = "test"


def announce(s: Session, experiment: Experiment, event: AlertEvent, detail: str | None) -> None:
    """Queues a message for each alert of the locked experiment or of its project that includes this event."""
    wanted = [alert for alert in alerts.about(s, experiment) if event in alert.events]
    if wanted:
        message = _message(s, event.value, {**_about(s, experiment), "detail": detail})
        alerts.enqueue(s, wanted, event.value, message)


def test(s: Session, alert: Alert) -> AlertDelivery:
    """Queues a test message for the alert."""
    detail = f"This is a test of an alert of the project {alert.project}."
    message = _message(s, TEST, {"project": alert.project, "detail": detail})
    return alerts.enqueue(s, [alert], TEST, message)[0]


def _message(s: Session, event: str, data: dict[str, Any]) -> dict[str, Any]:
    kind = event if event == TEST else f"experiment.{event}"
    return {"version": ALERT_VERSION, "type": kind, "timestamp": clock.now(s).isoformat(), "data": data}


def _about(s: Session, experiment: Experiment) -> dict[str, Any]:
    summaries = metrics.summary(s, [experiment.id])[experiment.id]
    return {
        "id": experiment.id,
        "name": experiment.name,
        "project": experiment.project,
        "state": experiment.state.value,
        "round": experiment.round,
        "rounds": experiment.rounds,
        "metrics": {name: summary.last for name, summary in summaries.items()},
    }
