"""``ferret experiment cancel ID``"""

from __future__ import annotations

from ferret_cli import options


def cancel(id: options.Id, url: options.Url = None, json: options.Json = False) -> None:
    """Stop an experiment; what its committed rounds gave is kept."""
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service

    run = Service(url).experiment(id).cancel()
    say(f"{run.id} is {run.state.value} after {run.experiment.round} rounds")
    if json:
        emit(run.experiment)
