"""Endpoints for the alerts of a project."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Path
from pydantic import Field

from ferret_api.access import Researcher, Viewer
from ferret_api.alerts import webhook
from ferret_api.alerts.addresses import Allowed, require_webhook
from ferret_api.context import ContextDep
from ferret_api.http.errors import problems
from ferret_api.routers.projects import Name
from ferret_api.schemas import PREFIX, Command
from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import ExperimentId
from ferret_core.protocol.resources.alerts import (
    MAIL_ADDRESS,
    Alert,
    AlertEvent,
    AlertEvents,
    AlertKind,
    AlertList,
    CreatedAlert,
    Delivery,
    DeliveryState,
)
from ferret_core.protocol.sanitize import Line
from ferret_db import tables
from ferret_db.engine import alerts as engine
from ferret_db.repositories import alerts, audit, experiments, projects


class NewAlert(
    Command,
    json_schema_extra={
        "examples": [
            {"kind": "webhook", "address": "https://hooks.example.org/ferret", "events": ["failed", "stalled"]}
        ]
    },
):
    """Request to create an alert."""

    kind: AlertKind
    address: Annotated[
        Line, Field(min_length=1, max_length=2000, description="Address of the webhook, or an e-mail address")
    ]
    events: AlertEvents = Field(default_factory=lambda: list(AlertEvent))
    experiment_id: ExperimentId | None = Field(
        default=None, description="The only experiment it covers; null: all experiments of the project"
    )


class AlertChange(Command, json_schema_extra={"examples": [{"enabled": False}]}):
    """Request to enable or disable an alert."""

    enabled: bool


router = APIRouter(prefix=f"{PREFIX}/projects/{{project}}/alerts", tags=["alerts"])

SHOWN = 5
"""Deliveries listed per alert."""
MOST = 20
"""Maximum number of alerts of one project."""
AlertId = Annotated[str, Path(max_length=64, description="Id of the alert")]
NOT_FOUND = problems("project.not_found", "alert.not_found")


@router.get("", operation_id="list_alerts", responses=problems("project.not_found"))
def list_alerts(project: Name, caller: Viewer) -> AlertList:
    """Lists the project's alerts, each with its latest deliveries. Requires the role viewer."""
    with caller.database.read() as s:
        projects.get(s, project)
        found = alerts.of_project(s, project)
        return AlertList(items=[_alert(alert, alerts.recent(s, alert.id, SHOWN)) for alert in found])


@router.post(
    "",
    operation_id="create_alert",
    status_code=201,
    responses=problems("project.not_found", "experiment.not_found", "alert.no_mail", "alert.too_many"),
)
def create_alert(project: Name, wanted: NewAlert, caller: Researcher, context: ContextDep) -> CreatedAlert:
    """Creates an alert. Requires the role researcher.

    For a webhook, the response holds the signing key, which is shown only this once.
    `alert.too_many` if the project already has 20 alerts, `alert.no_mail` if no mail server is configured."""
    with caller.database.begin() as s:
        projects.get(s, project)
        _require_address(wanted, context.settings)
        if alerts.count(s, project) >= MOST:
            detail = f"{project} already has {MOST} alerts, the maximum: ferret alert delete deletes one"
            raise FerretError("alert.too_many", detail)
        if wanted.experiment_id is not None and experiments.get(s, wanted.experiment_id).project != project:
            raise experiments.unknown(wanted.experiment_id)
        secret = webhook.new_secret() if wanted.kind == AlertKind.WEBHOOK else None
        events = list(dict.fromkeys(wanted.events))
        row = alerts.add(s, project, wanted.kind, wanted.address, events, secret, wanted.experiment_id)
        details = {
            "project": project,
            "kind": row.kind.value,
            "address": _shown_address(row),
            "events": ", ".join(events),
        }
        details |= {"experiment": row.experiment_id} if row.experiment_id else {}
        audit.record(s, caller.id, "alert.created", row.id, **details)
        return CreatedAlert(**_alert(row).model_dump(), secret=secret)


@router.post("/{alert_id}:test", operation_id="test_alert", status_code=202, responses=NOT_FOUND)
def test_alert(project: Name, alert_id: AlertId, caller: Researcher, context: ContextDep) -> Delivery:
    """Queues a test message and returns its delivery. Requires the role researcher.

    The result appears in the alert's deliveries. `request.too_many` after ten tests of a project's alerts within a
    minute."""
    with caller.database.begin() as s:
        projects.get(s, project)
        alert = alerts.get(s, project, alert_id)
        context.limits.admit_alert_test(project)
        delivery = engine.test(s, alert)
        audit.record(s, caller.id, "alert.tested", alert_id, project=project)
        return _delivery(delivery)


@router.patch("/{alert_id}", operation_id="change_alert", responses=NOT_FOUND)
def change_alert(project: Name, alert_id: AlertId, wanted: AlertChange, caller: Researcher) -> Alert:
    """Enables or disables the alert. Disabling it deletes its queued messages. Requires the role researcher."""
    with caller.database.begin() as s:
        projects.get(s, project)
        alerts.get(s, project, alert_id)
        row = alerts.switch(s, alert_id, enabled=wanted.enabled)
        audit.record(s, caller.id, "alert.changed", alert_id, project=project, enabled=wanted.enabled)
        return _alert(row, alerts.recent(s, alert_id, SHOWN))


@router.delete("/{alert_id}", operation_id="delete_alert", status_code=204, responses=NOT_FOUND)
def delete_alert(project: Name, alert_id: AlertId, caller: Researcher) -> None:
    """Deletes the alert and its queued messages. Requires the role researcher."""
    with caller.database.begin() as s:
        projects.get(s, project)
        row = alerts.get(s, project, alert_id)
        alerts.delete(s, alert_id)
        audit.record(s, caller.id, "alert.deleted", alert_id, project=project, address=_shown_address(row))


def _require_address(wanted: NewAlert, settings: ApiSettings) -> None:
    if wanted.kind == AlertKind.WEBHOOK:
        require_webhook(wanted.address, Allowed(settings.alert_networks))
    elif settings.smtp_host is None:
        raise FerretError(
            "alert.no_mail", "no mail server is configured: the operator sets FERRET_SMTP_HOST, or use a webhook"
        )
    elif len(wanted.address) > 254 or not re.search(MAIL_ADDRESS, wanted.address):
        raise FerretError.of_field("request.invalid", "address", wanted.address, "is not an e-mail address")


def _alert(row: tables.Alert, deliveries: Sequence[tables.AlertDelivery] = ()) -> Alert:
    own = {"address": _shown_address(row), "deliveries": [_delivery(delivery) for delivery in deliveries]}
    return Alert(**own, **{name: getattr(row, name) for name in Alert.model_fields if name not in own})


def _delivery(row: tables.AlertDelivery) -> Delivery:
    over = DeliveryState.DELIVERED if row.delivered_at else DeliveryState.FAILED
    columns = {name: getattr(row, name) for name in Delivery.model_fields if name != "state"}
    return Delivery(state=DeliveryState.WAITING if row.due_at else over, **columns)


def _shown_address(alert: tables.Alert) -> str:
    if alert.kind == AlertKind.EMAIL:
        return alert.address
    parts = urlsplit(alert.address)
    return f"{parts.scheme}://{parts.netloc}" + ("/…" if parts.path.strip("/") or parts.query else "")
