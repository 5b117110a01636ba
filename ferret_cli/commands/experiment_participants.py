"""``ferret experiment …``: enrolment codes and participants of an experiment."""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, show_list
from ferret_cli.resolve_experiment import connect, experiment, experiment_at, member_or_group

app = typer.Typer()

Reason = Annotated[
    str | None, typer.Option("--reason", help="Reason, shown to the participant; at most 500 characters.")
]


@app.command("enrol")
def enrol(
    id: options.Id,
    hours: Annotated[float, typer.Option("--hours", min=0.01, max=720, help="Hours until the code expires.")] = 24,
    count: Annotated[int, typer.Option("--count", min=1, max=1000, help="Number of codes to create.")] = 1,
    group: Annotated[
        str | None, typer.Option("--group", help="Group label of the codes, to list and revoke them by.")
    ] = None,
    approve: Annotated[
        bool,
        typer.Option(
            "--approve", help="A participant that joins waits until `ferret experiment approve` lets it take part."
        ),
    ] = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Create one-time codes. Each lets one participant join an experiment."""
    service = connect(url, insecure_http)
    run = experiment(service, id)
    codes = [service.enrolment(run.id, int(hours * 3600), group, approval=approve) for _ in range(count)]
    valid = "valid" if count == 1 else f"{count} codes, each valid"
    until = f"{codes[-1].expires_at:%Y-%m-%d %H:%M}"
    command = codes[-1].command
    say(f"{valid} for one participant until {until} UTC, who runs this and enters the code:\n  {command}")
    if not json:
        print(*(code.code for code in codes), sep="\n")
    elif count == 1:
        emit(codes[0])
    else:
        emit({"items": [code.model_dump(mode="json") for code in codes]})


@app.command("participants")
def participants(
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


@app.command("approve")
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


@app.command("refuse")
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


@app.command("revoke")
def revoke(
    id: options.Id,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the participant, as `ferret experiment participants` lists it."),
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
        say(f"{count} participants of {group} are revoked; {run.id} goes on without them")
        if json:
            emit({"revoked": count})
        return
    revoked = run.revoke(name, reason)
    say(f"{revoked.display_name} is revoked since {revoked.revoked_at:%Y-%m-%d %H:%M} UTC; {run.id} goes on without it")
    if json:
        emit(revoked)


@app.command("codes")
def codes(
    id: options.Id,
    group: options.Group = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List the enrolment codes of an experiment: open, used (by a participant), expired or revoked."""
    from datetime import UTC, datetime

    from ferret_cli.experiment_tables import code_rows

    found = list(experiment_at(url, insecure_http, id).codes(group))
    columns = ["id", "state", "group", "approval", "made", "expires", "used by", "shown again"]
    show_list(found, columns, code_rows(found, datetime.now(UTC)), json)


@app.command("revoke-code")
def revoke_code(
    id: options.Id,
    code: Annotated[
        str | None, typer.Argument(metavar="CODE_ID", help="Id of the code, as `ferret experiment codes` lists it.")
    ] = None,
    group: options.Group = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Revoke an unused enrolment code, or all unused ones of a group."""
    code, group = member_or_group("CODE_ID", code, group)
    run = experiment_at(url, insecure_http, id)
    if code is None:
        count = run.revoke_codes(group)
        say(f"{count} codes of {group} are revoked and can no longer be used to join")
        if json:
            emit({"revoked": count})
        return
    revoked = run.revoke_code(code)
    if revoked.used_at:
        say(f"{revoked.id} was used already, by {revoked.used_by}: ferret experiment revoke removes a participant")
    else:
        say(f"{revoked.id} can no longer be used to join")
    if json:
        emit(revoked)
