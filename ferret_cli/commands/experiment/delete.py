"""``ferret experiment delete ID``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def delete(
    id: options.Id,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first.")] = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Forget a finished experiment with its rounds, curves, checkpoints and ledger, for good."""
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service

    run = Service(url).experiment(id)
    if not yes:
        typer.confirm(f"Delete {id} ({run.experiment.name}) with all that it gave?", abort=True, err=True)
    run.delete()
    say(f"{id} is gone")
    if json:
        emit({"id": id, "deleted": True})
