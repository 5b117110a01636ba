"""``ferret experiment pause ID``"""

from __future__ import annotations

from ferret_cli import options


def pause(id: options.Id, url: options.Url = None, json: options.Json = False) -> None:
    """Stop an experiment for a while, mid-round too; what was accepted stays."""
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service

    run = Service(url).experiment(id).pause()
    say(f"{run.id} is {run.state.value} after {run.experiment.round} rounds; go on: ferret experiment resume {run.id}")
    if json:
        emit(run.experiment)
