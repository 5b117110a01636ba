"""``ferret alert …``: messages, by webhook or e-mail, about events of a project's experiments."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, show_line, show_list
from ferret_cli.resolve_experiment import connect
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.alerts import AlertEvent

if TYPE_CHECKING:
    from ferret_core.protocol.resources.alerts import Alert, Delivery
    from ferret_sdk.service.projects import Alerts
    from ferret_sdk.service.service import Service

app = typer.Typer(help="Messages, by webhook or e-mail, about events of a project's experiments.", no_args_is_help=True)

WAIT_SECONDS = 20.0
"""Longer than the first attempt takes."""

OfProject = Annotated[str | None, typer.Option("--project", help="Project to watch; not needed if you see only one.")]
AlertId = Annotated[str, typer.Argument(metavar="ID", help="Id of the alert, as ferret alert list shows it.")]


@app.command("create", epilog="Example: ferret alert create --webhook https://hooks.example.org/ferret --on failed")
def create(
    webhook: Annotated[
        str | None, typer.Option("--webhook", metavar="URL", help="Address that signed messages are posted to.")
    ] = None,
    email: Annotated[
        str | None, typer.Option("--email", metavar="ADDRESS", help="Address that messages are mailed to.")
    ] = None,
    on: Annotated[
        list[AlertEvent] | None, typer.Option("--on", help="Event to report; may be repeated; default: all.")
    ] = None,
    experiment: Annotated[
        str | None, typer.Option("--experiment", metavar="ID", help="Report this experiment alone.")
    ] = None,
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Create an alert. The signing key of a webhook is printed on stdout, only once."""
    from ferret_core.protocol.resources.alerts import AlertKind

    if (address := webhook or email) is None or (webhook and email):
        raise typer.BadParameter("give one of the two", param_hint="--webhook and --email")
    service = connect(url, insecure_http)
    kind = AlertKind.WEBHOOK if webhook else AlertKind.EMAIL
    only = service.experiment(experiment).experiment if experiment else None
    of = only.project if only else _project_of(service, project)
    made = service.alerts.create(of, kind, address, on or tuple(AlertEvent), only.id if only else None)
    about = made.experiment_id or made.project
    say(f"{made.address} receives messages about {about}; try it: ferret alert test {made.id} --project {made.project}")
    if json:
        emit(made)
    elif made.secret:
        say("keep this key where the webhook checks signatures; it is not shown again")
        print(made.secret)


@app.command("list", epilog="Example: ferret alert list")
def list_alerts(
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List the alerts, with the result of each one's last message."""
    service = connect(url, insecure_http)
    found = service.alerts.of(_project_of(service, project))
    show_list(found, ["id", "by", "to", "of", "on", "last message"], [_row(alert) for alert in found], json)


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


@app.command("test", epilog="Example: ferret alert test alr_5f0c9f6a3b1d2e47")
def send_test(
    id: AlertId,
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Send a test message and wait for it. Exit code 1 if it did not arrive."""
    service = connect(url, insecure_http)
    of = _project_of(service, project)
    delivery = _tried(service.alerts, of, id, service.alerts.test(of, id))
    show_line(f"{delivery.id} is {delivery.state}" + (f": {delivery.error}" if delivery.error else ""), as_json=json)
    if json:
        emit(delivery)
    if delivery.state != "delivered":
        raise typer.Exit(1)


def _tried(alerts: Alerts, project: str, id: str, sent: Delivery) -> Delivery:
    """Returns the delivery after its first attempt, or its state after :data:`WAIT_SECONDS`."""
    deadline = time.monotonic() + WAIT_SECONDS
    while sent.state == "waiting" and not sent.error and time.monotonic() < deadline:
        time.sleep(0.5)
        sent = next((each for each in alerts.get(project, id).deliveries if each.id == sent.id), sent)
    return sent


@app.command("disable", epilog="Example: ferret alert disable alr_5f0c9f6a3b1d2e47")
def disable(
    id: AlertId,
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Disable an alert and drop its queued messages. The alert and its key are kept."""
    _switch(id, project, url, insecure_http, json, enabled=False)


@app.command("enable", epilog="Example: ferret alert enable alr_5f0c9f6a3b1d2e47")
def enable(
    id: AlertId,
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Enable an alert again, for events from now on."""
    _switch(id, project, url, insecure_http, json, enabled=True)


def _switch(id: str, project: str | None, url: str | None, insecure_http: bool, json: bool, *, enabled: bool) -> None:

    service = connect(url, insecure_http)
    changed = service.alerts.switch(_project_of(service, project), id, enabled=enabled)
    say(f"{changed.address} receives " + ("messages again" if enabled else "nothing until you enable it"))
    if json:
        emit(changed)


@app.command("delete", epilog="Example: ferret alert delete alr_5f0c9f6a3b1d2e47")
def delete(
    id: AlertId,
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Delete an alert, with its queued messages."""
    service = connect(url, insecure_http)
    service.alerts.delete(_project_of(service, project), id)
    say(f"{id} is deleted")
    if json:
        emit({"id": id, "deleted": True})


def _project_of(service: Service, project: str | None) -> str:
    """Returns the named project, or the caller's only one; raises ``request.invalid`` if there are several."""
    if project is not None:
        return project
    seen = service.people.me().projects
    if len(seen) == 1:
        return seen[0]
    choice = f"say which: one of {', '.join(seen)}" if seen else "ask an administrator to make you a member of one"
    raise FerretError.of_field("request.invalid", "--project", None, f"an alert belongs to a project; {choice}")
