"""``ferret experiment cancel ID``"""

from __future__ import annotations

import typer

from ferret_cli import options


def cancel(
    id: options.Id,
    yes: options.Yes = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Stop an experiment for good; its committed rounds are kept."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    if not (yes or run.state.finished):
        typer.confirm(f"Cancel {run.id} ({run.experiment.name}) for good?", abort=True, err=True)
    run.cancel()
    say(f"{run.id} is {run.state.value} after {run.experiment.round} rounds")
    if json:
        emit(run.experiment)
