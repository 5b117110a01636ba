"""``ferret experiment archive ID`` and back."""

from __future__ import annotations

from ferret_cli import options


def archive(id: options.Id, url: options.Url = None, json: options.Json = False) -> None:
    """Put a finished experiment away: it stays, but lists leave it out."""
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service

    run = Service(url).experiment(id).archive()
    say(f"{run.id} is put away; see it: ferret experiment list --archived")
    if json:
        emit(run.experiment)


def unarchive(id: options.Id, url: options.Url = None, json: options.Json = False) -> None:
    """List an experiment again that was put away."""
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service

    run = Service(url).experiment(id).unarchive()
    say(f"{run.id} is listed again")
    if json:
        emit(run.experiment)
