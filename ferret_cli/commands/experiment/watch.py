"""``ferret experiment watch ID``"""

from __future__ import annotations

from ferret_cli import options


def watch(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Follow an experiment until it ends; with --json, print every event as one line of JSON.

    The exit code is 0 only if the experiment completed.
    """
    from ferret_cli.error_output import require_completed
    from ferret_cli.output import emit
    from ferret_cli.resolve_experiment import experiment
    from ferret_cli.watch import watch_to_the_end
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    if json:
        for event in run.events():
            emit(event)
        run.refresh()
    else:
        watch_to_the_end(run)
    require_completed(run)
