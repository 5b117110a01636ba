"""Endpoints for the alerts of a project."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Path

from ferret_api.access import Researcher, Viewer
from ferret_api.alerts import resource, webhook
from ferret_api.alerts.addresses import Allowed, require_webhook
from ferret_api.alerts.schemas import AlertChange, NewAlert
from ferret_api.context import ContextDep
from ferret_api.http.problems import problems
from ferret_api.projects.endpoints import Name
from ferret_api.schemas import PREFIX
from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.alerts import MAIL_ADDRESS, Alert, AlertKind, AlertList, CreatedAlert, Delivery
from ferret_db.engine import alerts as engine
from ferret_db.repositories import alerts, audit, experiments, projects

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
        return AlertList(items=[resource.of(alert, alerts.recent(s, alert.id, SHOWN)) for alert in found])


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
            detail = f"{project} already has {MOST} alerts, the maximum: ferret alert remove deletes one"
            raise FerretError("alert.too_many", detail)
        if wanted.experiment_id is not None and experiments.get(s, wanted.experiment_id).project != project:
            raise experiments.unknown(wanted.experiment_id)
        secret = webhook.new_secret() if wanted.kind == AlertKind.WEBHOOK else None
        events = list(dict.fromkeys(wanted.events))
        row = alerts.add(s, project, wanted.kind, wanted.address, events, secret, wanted.experiment_id)
        told = {"project": project, "kind": row.kind.value, "address": resource.shown(row), "events": ", ".join(events)}
        told |= {"experiment": row.experiment_id} if row.experiment_id else {}
        audit.record(s, caller.id, "alert.created", row.id, **told)
        return CreatedAlert(**resource.of(row).model_dump(), secret=secret)


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
        return resource.of_delivery(delivery)


@router.patch("/{alert_id}", operation_id="change_alert", responses=NOT_FOUND)
def change_alert(project: Name, alert_id: AlertId, wanted: AlertChange, caller: Researcher) -> Alert:
    """Enables or disables the alert. Disabling it deletes its queued messages. Requires the role researcher."""
    with caller.database.begin() as s:
        projects.get(s, project)
        alerts.get(s, project, alert_id)
        row = alerts.switch(s, alert_id, enabled=wanted.enabled)
        audit.record(s, caller.id, "alert.changed", alert_id, project=project, enabled=wanted.enabled)
        return resource.of(row, alerts.recent(s, alert_id, SHOWN))


@router.delete("/{alert_id}", operation_id="delete_alert", status_code=204, responses=NOT_FOUND)
def delete_alert(project: Name, alert_id: AlertId, caller: Researcher) -> None:
    """Deletes the alert and its queued messages. Requires the role researcher."""
    with caller.database.begin() as s:
        projects.get(s, project)
        row = alerts.get(s, project, alert_id)
        alerts.delete(s, alert_id)
        audit.record(s, caller.id, "alert.deleted", alert_id, project=project, address=resource.shown(row))


def _require_address(wanted: NewAlert, settings: ApiSettings) -> None:
    """Raises ``request.invalid`` for a malformed address, and ``alert.no_mail`` if no mail server is configured."""
    if wanted.kind == AlertKind.WEBHOOK:
        require_webhook(wanted.address, Allowed(settings.alert_networks))
    elif settings.smtp_host is None:
        raise FerretError(
            "alert.no_mail", "no mail server is configured: the operator sets FERRET_SMTP_HOST, or use a webhook"
        )
    elif len(wanted.address) > 254 or not re.search(MAIL_ADDRESS, wanted.address):
        raise FerretError.of_field("request.invalid", "address", wanted.address, "is not an e-mail address")
