"""``ferret alert add``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.commands.alert.of_project import OfProject
from ferret_core.protocol.alerts import AlertEvent


def add(
    webhook: Annotated[
        str | None, typer.Option("--webhook", metavar="URL", help="Address that signed messages are posted to.")
    ] = None,
    email: Annotated[str | None, typer.Option("--email", metavar="ADDRESS", help="Address that is written to.")] = None,
    on: Annotated[
        list[AlertEvent] | None, typer.Option("--on", help="Event to tell of; may be repeated; default: all.")
    ] = None,
    experiment: Annotated[
        str | None, typer.Option("--experiment", metavar="ID", help="Tell of this experiment alone.")
    ] = None,
    project: OfProject = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Have somebody told. The key of a webhook's signatures is printed on stdout, only this once."""
    from ferret_cli import resolve_experiment
    from ferret_cli.commands.alert.of_project import chosen
    from ferret_cli.output import emit, say
    from ferret_core.protocol.alerts import AlertKind
    from ferret_sdk.service.service import Service

    if (address := webhook or email) is None or (webhook and email):
        raise typer.BadParameter("give one of the two", param_hint="--webhook and --email")
    service = Service(url, insecure_http=insecure_http)
    kind = AlertKind.WEBHOOK if webhook else AlertKind.EMAIL
    only = resolve_experiment.experiment(service, experiment).experiment if experiment else None
    of = only.project if only else chosen(service, project)
    made = service.alerts.add(of, kind, address, on or tuple(AlertEvent), only.id if only else None)
    about = made.experiment_id or made.project
    say(f"{made.address} is told of {about}; try it: ferret alert test {made.id} --project {made.project}")
    if json:
        emit(made)
    elif made.secret:
        say("keep this key where the webhook checks signatures; it is not shown again")
        print(made.secret)
