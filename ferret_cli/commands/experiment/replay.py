"""``ferret experiment replay ID --round N --out FOLDER``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options


def replay(
    id: options.Id,
    round: Annotated[int, typer.Option("--round", min=0, help="Round whose model to rebuild; 0 is the base model.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="New or empty folder for the checkpoint.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Rebuild the model of any committed round from the base model and the ledger, as a checkpoint for transformers."""
    from ferret_cli.output import emit, say
    from ferret_cli.requirements_check import require_training
    from ferret_cli.resolve_experiment import experiment

    require_training()

    from ferret_cli.ledger_replay import replay as rebuild
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    folder = out.expanduser().resolve()
    manifest = rebuild(
        run, round, folder, lambda record: say(f"round {record.round:>4}  {record.digest[:16]}…  verified")
    )
    say(f"round {round} is in {folder}, the model's digest is {manifest.digest}")
    if json:
        emit({"id": run.id, "round": round, "digest": manifest.digest, "checkpoint": str(folder)})
    else:
        print(folder)
