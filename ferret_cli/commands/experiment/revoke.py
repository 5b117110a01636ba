"""``ferret experiment revoke ID NAME``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def revoke(
    id: options.Id,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the participant, as `ferret experiment participants` lists it."),
    ] = None,
    group: options.Group = None,
    reason: Annotated[
        str | None,
        typer.Option("--reason", help="Why: the participant is shown this; at most 500 characters."),
    ] = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Remove a participant, or all of a group: its token is refused from now on, and rounds go on without it. What was
    accepted from it stays in the ledger."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment, member_or_group
    from ferret_sdk.service.service import Service

    name, group = member_or_group("NAME", name, group)
    run = experiment(Service(url, insecure_http=insecure_http), id)
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
