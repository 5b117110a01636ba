"""``ferret experiment export-metrics ID``"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options


class Format(StrEnum):
    """A table, or a tool that follows the experiment."""

    CSV = "csv"
    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"
    WANDB = "wandb"
    TRACKIO = "trackio"


def export_metrics(
    id: options.Id,
    to: Annotated[
        Format, typer.Option("--to", help="csv prints what there is; a tool gets every round as it comes.")
    ] = Format.CSV,
    dir: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="Where the tool keeps its files, if not in its usual place.",
            file_okay=False,
        ),
    ] = None,
    project: Annotated[str, typer.Option("--project", help="What the tool groups runs by.")] = "ferret",
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Bring an experiment's metrics into another tool.

    A tool gets parameters, tags and every round until the experiment ends. Stopped and run again, the command goes on
    where it was: what is there already is not written twice.
    """
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.exporters import export_metrics
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    if to is Format.CSV:
        if json:
            emit({"id": run.id, "csv": run.to_csv()})
        else:
            print(run.to_csv(), end="")
        return
    say(f"{to.value} gets the rounds of {run.id}; Ctrl-C stops the export and not the experiment")
    count = export_metrics(run, to.value, dir, project=project, on_round=lambda row: say(f"round {row.round}"))
    say(f"{count} rounds were written; {run.id} is {run.state.value}")
    if json:
        emit({"id": run.id, "to": to.value, "rounds": count})
