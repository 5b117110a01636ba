"""``ferret experiment export ID FOLDER``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options


def export(
    id: options.Id,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New or empty folder for the checkpoint.")],
    round: Annotated[
        int | None,
        typer.Option("--round", min=0, help="Round of the checkpoint; 0 is the base model; default: the latest."),
    ] = None,
    best: Annotated[
        bool, typer.Option("--best", help="The best checkpoint of those kept, by stopping.metric of the specification.")
    ] = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Download a checkpoint that transformers can load; every file is checked against its digest.

    Beside its files the folder has a model card and a chat template that asks in training's words.
    """
    from ferret_cli.choose import experiment
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service

    if best and round is not None:
        raise typer.BadParameter("give one of the two", param_hint="--round and --best")
    run = experiment(Service(url, insecure_http=insecure_http), id)
    files = run.best_checkpoint() if best else run.checkpoint(round)
    path = run.export(folder, files[0].round).resolve()
    say(f"round {files[0].round} is in {path}")
    if json:
        emit({"id": run.id, "round": files[0].round, "checkpoint": str(path), "files": [file.name for file in files]})
    else:
        print(path)
