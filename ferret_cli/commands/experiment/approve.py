"""``ferret experiment approve ID NAME`` and ``ferret experiment refuse ID NAME``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def approve(
    id: options.Id,
    name: options.ParticipantName,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Let a participant that waits to be approved take part."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    approved = run.approve(name)
    say(f"{approved.display_name} takes part in {run.id} from now on")
    if json:
        emit(approved)


def refuse(
    id: options.Id,
    name: options.ParticipantName,
    reason: Annotated[
        str | None,
        typer.Option("--reason", help="Why: the participant is shown this; at most 500 characters."),
    ] = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Refuse a participant that waits to be approved, for good. Its place is free for another."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    refused = run.refuse(name, reason)
    say(f"{refused.display_name} is refused: it takes no part in {run.id}")
    if json:
        emit(refused)
