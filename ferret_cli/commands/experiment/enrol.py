"""``ferret experiment enrol ID``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def enrol(
    id: options.Id,
    hours: Annotated[float, typer.Option("--hours", min=0.01, max=720, help="How long the code can be used.")] = 24,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Make a one-time code with which one participant joins an experiment."""
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service

    code = Service(url).enrolment(id, int(hours * 3600))
    say(f"good for one participant until {code.expires_at:%Y-%m-%d %H:%M} UTC; it runs:\n  {code.command}")
    if json:
        emit(code)
    else:
        print(code.code)
