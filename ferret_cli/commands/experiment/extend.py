"""``ferret experiment extend ID``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def extend(
    id: options.Id,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Number of rounds to add.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Add rounds to an experiment; a completed one runs again."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    if run.experiment.stopped:
        say(f"{run.id} had {run.experiment.stopped.detail}; its patience begins anew")
    run.extend(rounds)
    say(f"{run.id} is {run.state.value} after {run.experiment.round} of {run.experiment.rounds} rounds")
    if json:
        emit(run.experiment)
