"""``ferret experiment enrol ID``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def enrol(
    id: options.Id,
    hours: Annotated[float, typer.Option("--hours", min=0.01, max=720, help="Hours until the code expires.")] = 24,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Create a one-time code that lets one participant join an experiment."""
    from ferret_cli.choose import experiment
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service

    service = Service(url, insecure_http=insecure_http)
    code = service.enrolment(experiment(service, id).id, int(hours * 3600))
    until = f"{code.expires_at:%Y-%m-%d %H:%M}"
    say(f"valid for one participant until {until} UTC, who runs this, and gives the code when asked:\n  {code.command}")
    if json:
        emit(code)
    else:
        print(code.code)
