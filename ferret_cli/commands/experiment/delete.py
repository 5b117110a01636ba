"""``ferret experiment delete ID``"""

from __future__ import annotations

import typer

from ferret_cli import options


def delete(
    id: options.Id,
    yes: options.Yes = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Delete a finished experiment with its rounds, curves, checkpoints and ledger, for good."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    if not yes:
        typer.confirm(f"Delete {run.id} ({run.experiment.name}) with all its results?", abort=True, err=True)
    run.delete()
    say(f"{run.id} is deleted")
    if json:
        emit({"id": run.id, "deleted": True})
