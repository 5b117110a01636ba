"""``ferret experiment pause ID``"""

from __future__ import annotations

from ferret_cli import options


def pause(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Pause an experiment, even within a round; accepted contributions are kept."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id).pause()
    say(
        f"{run.id} is {run.state.value} after round {run.experiment.round}; continue: ferret experiment resume {run.id}"
    )
    if json:
        emit(run.experiment)
