"""``ferret alert test ID``"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from ferret_cli import options
from ferret_cli.commands.alert.of_project import AlertId, OfProject

if TYPE_CHECKING:
    from ferret_core.protocol.resources.alerts import Delivery
    from ferret_sdk.service.alerts import Alerts

WAIT_SECONDS = 20.0
"""More than the first attempt takes."""


def send_test(
    id: AlertId,
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Send a message that says nothing but that it came, and wait for it. Exit code 1 if it did not arrive."""
    from ferret_cli.commands.alert.of_project import chosen
    from ferret_cli.output import emit, say
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    of = chosen(service, project)
    delivery = _tried(service.alerts, of, id, service.alerts.test(of, id))
    say(f"{delivery.id} is {delivery.state}" + (f": {delivery.error}" if delivery.error else ""))
    if json:
        emit(delivery)
    if delivery.state != "delivered":
        raise typer.Exit(1)


def _tried(alerts: Alerts, project: str, id: str, sent: Delivery) -> Delivery:
    """The delivery once it was tried, or as it is after :data:`WAIT_SECONDS`."""
    deadline = time.monotonic() + WAIT_SECONDS
    while sent.state == "waiting" and not sent.error and time.monotonic() < deadline:
        time.sleep(0.5)
        sent = next((each for each in alerts.get(project, id).deliveries if each.id == sent.id), sent)
    return sent
