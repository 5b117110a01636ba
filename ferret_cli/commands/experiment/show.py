"""``ferret experiment show ID``"""

from __future__ import annotations

from ferret_cli import options


def show(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Show one experiment: its state, why it is stalled if it is, metrics, cost, rounds and refused uploads."""
    from ferret_cli.experiment_tables import (
        cost_rows,
        label_rows,
        metrics_rows,
        overview_rows,
        rejection_rows,
        round_rows,
    )
    from ferret_cli.output import emit, table
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    run = experiment(Service(url, insecure_http=insecure_http), id)
    if json:
        emit(run.experiment)
        return
    rounds = list(run.rounds())
    losses = ["train loss", "eval loss", "Rouge-L"]
    tables = {
        ("", ""): overview_rows(run.experiment),
        ("metric", "first", "last", "best"): metrics_rows(run.experiment),
        ("cost per round", "median"): cost_rows(rounds),
        ("label", "eval loss", "Rouge-L"): label_rows(rounds),
        ("round", "state", "accepted", *losses, "sent", "received"): round_rows(rounds),
        ("round", "participant", "refused", "reason", "detail of the latest"): rejection_rows(run.rejections()),
    }
    for columns, rows in tables.items():
        if shown := list(rows):
            table(columns, shown)
