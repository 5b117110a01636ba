"""``ferret experiment resume ID``"""

from __future__ import annotations

from ferret_cli import options


def resume(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Continue a paused experiment where it stopped."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id).resume()
    say(f"{run.id} is {run.state.value} in round {run.experiment.round + 1} of {run.experiment.rounds}")
    if json:
        emit(run.experiment)
