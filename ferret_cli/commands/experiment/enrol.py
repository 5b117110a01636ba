"""``ferret experiment enrol ID``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def enrol(
    id: options.Id,
    hours: Annotated[float, typer.Option("--hours", min=0.01, max=720, help="Hours until the code expires.")] = 24,
    count: Annotated[int, typer.Option("--count", min=1, max=1000, help="Create so many codes.")] = 1,
    group: Annotated[
        str | None,
        typer.Option("--group", help="A word for codes that belong together, to list and revoke them by."),
    ] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Who joins waits until `ferret experiment approve` lets it take part.")
    ] = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Create one-time codes, each of which lets one participant join an experiment."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    run = experiment(service, id)
    codes = [service.enrolment(run.id, int(hours * 3600), group, approval=approve) for _ in range(count)]
    valid = "valid" if count == 1 else f"{count} codes, each valid"
    until = f"{codes[-1].expires_at:%Y-%m-%d %H:%M}"
    command = codes[-1].command
    say(f"{valid} for one participant until {until} UTC, who runs this, and gives the code when asked:\n  {command}")
    if not json:
        print(*(code.code for code in codes), sep="\n")
    elif count == 1:
        emit(codes[0])
    else:
        emit({"items": [code.model_dump(mode="json") for code in codes]})
