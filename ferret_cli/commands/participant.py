"""``ferret participant …``: the sites that take part in an experiment."""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, show_list
from ferret_cli.resolve_experiment import experiment_at, member_or_group

app = typer.Typer(help="The sites that take part in an experiment.", no_args_is_help=True)

Reason = Annotated[
    str | None, typer.Option("--reason", help="Reason, shown to the participant; at most 500 characters.")
]


@app.command("list", epilog="Example: ferret participant list latest")
def list_participants(
    id: options.Id,
    group: options.Group = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List the real participants of an experiment: time of joining, last request for work, revocation."""
    from ferret_cli.experiment_tables import participant_rows

    found = list(experiment_at(url, insecure_http, id).participants(group))
    columns = ["participant", "name", "state", "group", "joined", "last work", "revoked", "reason"]
    show_list(found, columns, participant_rows(found), json)


@app.command("approve", epilog="Example: ferret participant approve latest hospital-a")
def approve(
    id: options.Id,
    name: options.ParticipantName,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Approve a waiting participant."""
    run = experiment_at(url, insecure_http, id)
    approved = run.approve(name)
    say(f"{approved.display_name} takes part in {run.id} from now on")
    if json:
        emit(approved)


@app.command("refuse", epilog='Example: ferret participant refuse latest hospital-b --reason "no contract yet"')
def refuse(
    id: options.Id,
    name: options.ParticipantName,
    reason: Reason = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Refuse a waiting participant permanently. Its place becomes free."""
    run = experiment_at(url, insecure_http, id)
    refused = run.refuse(name, reason)
    say(f"{refused.display_name} is refused: it takes no part in {run.id}")
    if json:
        emit(refused)


@app.command("revoke", epilog='Example: ferret participant revoke latest hospital-a --reason "left the study"')
def revoke(
    id: options.Id,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the participant, as `ferret participant list` lists it."),
    ] = None,
    group: options.Group = None,
    reason: Reason = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Remove a participant, or all of a group: its token is refused from now on, and rounds continue without it. Its
    accepted contributions stay in the ledger.
    """
    name, group = member_or_group("NAME", name, group)
    run = experiment_at(url, insecure_http, id)
    if name is None:
        count = run.revoke_group(group, reason)
        say(f"participants of {group} revoked: {count}; {run.id} goes on without them")
        if json:
            emit({"revoked": count})
        return
    revoked = run.revoke(name, reason)
    say(f"{revoked.display_name} is revoked since {revoked.revoked_at:%Y-%m-%d %H:%M} UTC; {run.id} goes on without it")
    if json:
        emit(revoked)
