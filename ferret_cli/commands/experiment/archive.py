"""``ferret experiment archive ID`` and back."""

from __future__ import annotations

from ferret_cli import options


def archive(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Archive a finished experiment: it is kept, but no longer listed."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id).archive()
    say(f"{run.id} is archived; list archived experiments: ferret experiment list --archived")
    if json:
        emit(run.experiment)


def unarchive(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Take an experiment out of the archive: it is listed again."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id).unarchive()
    say(f"{run.id} is listed again")
    if json:
        emit(run.experiment)
