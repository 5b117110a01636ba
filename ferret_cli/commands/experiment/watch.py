"""``ferret experiment watch ID``"""

from __future__ import annotations

from ferret_cli import options


def watch(id: options.Id, url: options.Url = None, json: options.Json = False) -> None:
    """Follow an experiment until it ends; with --json every event as one line of JSON.

    Fails as the experiment does.
    """
    from ferret_cli.failure import require_completed
    from ferret_cli.output import emit
    from ferret_cli.watch import watch_to_the_end
    from ferret_sdk.service import Service

    run = Service(url).experiment(id)
    if json:
        for event in run.events():
            emit(event)
        run.refresh()
    else:
        watch_to_the_end(run)
    require_completed(run)
