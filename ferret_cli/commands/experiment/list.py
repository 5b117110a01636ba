"""``ferret experiment list``"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from ferret_cli import options
from ferret_core.protocol.states import ExperimentState


def list_experiments(
    state: Annotated[
        list[ExperimentState] | None, typer.Option("--state", help="Only experiments in this state; may be repeated.")
    ] = None,
    algorithm: Annotated[str | None, typer.Option("--algorithm", help="Only experiments with this algorithm.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only experiments with this dataset.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Only experiments with this text in their name.")] = None,
    project: Annotated[str | None, typer.Option("--project", help="Only experiments of this project.")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="Only experiments with this tag; may be repeated, for each of them."),
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived experiments.")] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            metavar="[-]COLUMN",
            help="Such as name, rounds, bytes_up, eval_loss or rouge_l; with a minus the greatest first.",
        ),
    ] = None,
    group: Annotated[
        bool,
        typer.Option(
            "--group", help="One row for experiments that differ in name and seed only, with mean ± deviation."
        ),
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many.")] = 50,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List the experiments, newest first unless --sort says otherwise."""
    from ferret_cli.experiment_tables import GROUP_COLUMNS, LIST_COLUMNS, group_row, list_row
    from ferret_cli.output import emit, table
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    wanted: dict[str, Any] = {"state": [each.value for each in state or ()], "tags": tag or (), "archived": archived}
    wanted |= {"algorithm": algorithm, "dataset": dataset, "name": name, "project": project, "sort": sort}
    if group:
        groups = list(islice(service.experiment_groups(**wanted), limit))
        listed, columns, rows = groups, GROUP_COLUMNS, map(group_row, groups)
    else:
        experiments = list(islice(service.experiments(**wanted), limit))
        listed, columns, rows = experiments, LIST_COLUMNS, map(list_row, experiments)
    if json:
        emit({"items": [each.model_dump(mode="json") for each in listed]})
        return
    table(columns, rows)
