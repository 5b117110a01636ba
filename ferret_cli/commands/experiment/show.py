"""``ferret experiment show ID``"""

from __future__ import annotations

from ferret_cli import options


def show(id: options.Id, url: options.Url = None, json: options.Json = False) -> None:
    """Show one experiment: state, and what to do where it is stalled; metrics, cost, rounds, refused uploads."""
    from ferret_cli.describe import cost_rows, label_rows, metrics_rows, overview_rows, rejection_rows, round_rows
    from ferret_cli.output import emit, table
    from ferret_sdk.service import Service

    run = Service(url).experiment(id)
    if json:
        emit(run.experiment)
        return
    rounds = list(run.rounds())
    table(["", ""], overview_rows(run.experiment))
    table(["metric", "first", "last", "best"], metrics_rows(run.experiment))
    table(["cost per round", "median"], cost_rows(rounds))
    if labels := list(label_rows(rounds)):
        table(["label", "eval loss", "Rouge-L"], labels)
    table(["round", "state", "accepted", "train loss", "eval loss", "Rouge-L", "sent", "received"], round_rows(rounds))
    if refused := list(rejection_rows(run.rejections())):
        table(["round", "participant", "refused", "reason", "the last one's detail"], refused)
