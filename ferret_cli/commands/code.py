"""``ferret code …``: one-time codes: each lets one site join an experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options
from ferret_cli.output import debugging, emit, say, show_list, tell_error
from ferret_cli.resolve_experiment import connect, experiment_at, member_or_group
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_core.protocol.resources.participants import Enrolment

app = typer.Typer(help="One-time codes: each lets one site join an experiment.", no_args_is_help=True)


@app.command("create", epilog="Example: ferret code create latest --hours 72")
def create(
    id: options.Id,
    hours: Annotated[float, typer.Option("--hours", min=0.01, max=720, help="Hours until the code expires.")] = 24,
    count: Annotated[int, typer.Option("--count", min=1, max=1000, help="Number of codes to create.")] = 1,
    group: Annotated[
        str | None, typer.Option("--group", help="Group label of the codes, to list and revoke them by.")
    ] = None,
    approve: Annotated[
        bool,
        typer.Option(
            "--approve", help="A participant that joins waits until `ferret participant approve` lets it take part."
        ),
    ] = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Create one-time codes. Each lets one participant join an experiment."""
    service = connect(url, insecure_http)
    run = service.experiment(id)
    made: list[Enrolment] = []
    try:
        for _ in range(count):
            code = run.create_code(int(hours * 3600), group, approval=approve)
            if not made:
                until = f"{code.expires_at:%Y-%m-%d %H:%M}"
                say(
                    f"each code is valid for one participant until {until} UTC, who runs this and enters the code:\n"
                    f"  {code.command}"
                )
            made.append(code)
            if not json:
                print(code.code, flush=True)
    except FerretError as error:
        if debugging() or not (json and made):
            raise
        raise typer.Exit(tell_error(error)) from error  # stdout has the codes
    finally:  # codes that were made before an interrupt are valid
        if json and count > 1 and made:
            emit({"items": [code.model_dump(mode="json") for code in made]})
    if json and count == 1:
        emit(made[0])


@app.command("list", epilog="Example: ferret code list latest")
def list_codes(
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


@app.command("revoke", epilog="Example: ferret code revoke latest enr_5f0c9f6a3b1d2e47")
def revoke(
    id: options.Id,
    code: Annotated[
        str | None, typer.Argument(metavar="CODE_ID", help="Id of the code, as `ferret code list` lists it.")
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
        say(f"codes of {group} revoked: {count}; they can no longer be used to join")
        if json:
            emit({"revoked": count})
        return
    revoked = run.revoke_code(code)
    if revoked.used_at:
        say(f"{revoked.id} was used already, by {revoked.used_by}: ferret participant revoke removes a participant")
    else:
        say(f"{revoked.id} can no longer be used to join")
    if json:
        emit(revoked)
