"""``ferret alert list``"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferret_cli import options
from ferret_cli.commands.alert.of_project import OfProject

if TYPE_CHECKING:
    from ferret_core.protocol.resources.alerts import Alert


def list_alerts(
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List who is told, and how the last message fared."""
    from ferret_cli.commands.alert.of_project import chosen
    from ferret_cli.output import emit, table
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    found = service.alerts.of(chosen(service, project))
    if json:
        emit({"items": [alert.model_dump(mode="json") for alert in found]})
        return
    table(["id", "by", "to", "of", "on", "last message"], [_row(alert) for alert in found])


def _row(alert: Alert) -> tuple[str, ...]:
    of = alert.experiment_id or "all experiments"
    on = ", ".join(alert.events) if alert.enabled else "nothing: disabled"
    return alert.id, alert.kind.value, alert.address, of, on, _last(alert)


def _last(alert: Alert) -> str:
    if not alert.deliveries:
        return "none yet"
    last = alert.deliveries[0]
    why = f": {last.error}, attempt {last.attempts}" if last.error else ""
    return f"{last.event} {last.state}{why}"
