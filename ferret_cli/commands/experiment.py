"""``ferret experiment …``: find, follow, change, keep or delete experiments."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from ferret_cli import options
from ferret_cli.output import emit, require_completed, say, show_list, table
from ferret_cli.resolve_experiment import connect, experiment_at
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ExperimentState

app = typer.Typer(help="List, follow and manage the experiments on a server.", no_args_is_help=True)


@app.command("list", epilog="Example: ferret experiment list --state running --sort -eval_loss")
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
            help="Field such as name, rounds, bytes_up, eval_loss or rouge_l; a minus sign reverses the order.",
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
    """List the experiments, newest first unless --sort gives another order."""
    from ferret_cli.experiment_tables import GROUP_COLUMNS, LIST_COLUMNS, group_row, list_row

    service = connect(url, insecure_http)
    wanted: dict[str, Any] = {"state": [each.value for each in state or ()], "tags": tag or (), "archived": archived}
    wanted |= {"algorithm": algorithm, "dataset": dataset, "name": name, "project": project, "sort": sort}
    if group:
        groups = list(islice(service.experiment_groups(**wanted), limit))
        listed, columns, rows = groups, GROUP_COLUMNS, map(group_row, groups)
    else:
        experiments = list(islice(service.experiments(**wanted), limit))
        listed, columns, rows = experiments, LIST_COLUMNS, map(list_row, experiments)
    show_list(listed, columns, rows, json)


@app.command("show", epilog="Example: ferret experiment show latest")
def show(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Show one experiment: its state, why it is stalled if it is, who reads what, metrics, cost, rounds and refused
    uploads."""
    from ferret_cli.experiment_tables import (
        cost_rows,
        label_rows,
        metrics_rows,
        overview_rows,
        privacy_rows,
        rejection_rows,
        round_rows,
        sum_rows,
    )

    run = experiment_at(url, insecure_http, id)
    if json:
        emit(run.experiment)
        return
    rounds = list(run.rounds())
    losses = ["train loss", "eval loss", "Rouge-L"]
    tables = {
        ("", ""): overview_rows(run.experiment),
        ("privacy", ""): privacy_rows(run.experiment),
        ("metric", "first", "last", "best"): metrics_rows(run.experiment),
        ("cost per round", "median"): cost_rows(rounds),
        ("label", "eval loss", "Rouge-L"): label_rows(rounds),
        ("round", "state", "accepted", *losses, "sent", "received"): round_rows(rounds),
        ("round", "secure sum", "survivors", "dropped out", "left out of the model"): sum_rows(rounds),
        ("round", "participant", "refused", "reason", "detail of the latest"): rejection_rows(run.rejections()),
    }
    for columns, rows in tables.items():
        if shown := list(rows):
            table(columns, shown)


@app.command("watch", epilog="Example: ferret experiment watch latest")
def watch(
    id: options.Id,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.JsonLines = False,
) -> None:
    """Follow an experiment until it ends; with --json, print every event as one line of JSON.

    The exit code is 0 only if the experiment completed.
    """
    from ferret_cli.round_progress import watch_to_the_end

    run = experiment_at(url, insecure_http, id)
    if json:
        for event in run.events():
            emit(event)
        run.refresh()
    else:
        watch_to_the_end(run)
    require_completed(run)


@app.command("pause", epilog="Example: ferret experiment pause quickstart")
def pause(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Pause an experiment, even within a round; accepted contributions are kept."""
    run = experiment_at(url, insecure_http, id).pause()
    say(
        f"{run.id} is {run.state.value} after round {run.experiment.round}; continue: ferret experiment resume {run.id}"
    )
    if json:
        emit(run.experiment)


@app.command("resume", epilog="Example: ferret experiment resume quickstart")
def resume(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Continue a paused experiment where it stopped."""
    run = experiment_at(url, insecure_http, id).resume()
    say(f"{run.id} is {run.state.value} in round {run.experiment.round + 1} of {run.experiment.rounds}")
    if json:
        emit(run.experiment)


@app.command("extend", epilog="Example: ferret experiment extend latest --rounds 10")
def extend(
    id: options.Id,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Number of rounds to add.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Add rounds to an experiment; a completed one runs again."""
    run = experiment_at(url, insecure_http, id)
    stopped = run.experiment.stopped
    run.extend(rounds)
    if stopped:
        say(f"{run.id} had {stopped.detail}; its patience is reset")
    say(f"{run.id} is {run.state.value} after {run.experiment.round} of {run.experiment.rounds} rounds")
    if json:
        emit(run.experiment)


@app.command("cancel", epilog="Example: ferret experiment cancel latest --yes")
def cancel(
    id: options.Id,
    yes: options.Yes = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Stop an experiment for good; its committed rounds are kept."""
    run = experiment_at(url, insecure_http, id)
    if not (yes or run.state.finished):
        typer.confirm(f"Cancel {run.id} ({run.experiment.name}) for good?", abort=True, err=True)
    run.cancel()
    say(f"{run.id} is {run.state.value} after {run.experiment.round} rounds")
    if json:
        emit(run.experiment)


@app.command("clone", epilog="Example: ferret experiment clone latest --set seed=2")
def clone(
    id: options.Id,
    assignments: options.Assignments = None,
    unset: options.Unset = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Project of the copy, if different from the original's.")
    ] = None,
    key: options.Key = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Submit a copy of an experiment, with changes."""
    from ferret_cli import spec_input
    from ferret_core.experiment.diff import differences
    from ferret_sdk.http.transport import is_loopback

    service = connect(url, insecure_http)
    changes = spec_input.changes(assignments or (), unset or (), absolute_paths=is_loopback(service.url))
    original = service.experiment(id)
    run = original.clone(changes, key, project=project)
    for field, before, after in differences(original.experiment.spec, run.experiment.spec):
        say(f"{field}: {_told(before)} → {_told(after)}")
    say(f"{run.id} is {run.state.value}, like {original.id}; follow it: ferret experiment watch {run.id}")
    if json:
        emit(run.experiment)
    else:
        print(run.id)


def _told(value: Any) -> str:
    return "unset" if value is None else repr(value)


@app.command("edit", epilog='Example: ferret experiment edit latest --name "Second try" --tag thesis')
def edit(
    id: options.Id,
    name: Annotated[str | None, typer.Option("--name", help="New name.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag to add; may be repeated.")] = None,
    untag: Annotated[list[str] | None, typer.Option("--untag", help="A tag to remove; may be repeated.")] = None,
    note: Annotated[
        str | None, typer.Option("--note", help="Notes in Markdown, replacing the present ones; empty for none.")
    ] = None,
    priority: options.Priority = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Change an experiment's name, tags, notes and priority. The training does not change."""
    if name is None and note is None and priority is None and not (tag or untag):
        raise FerretError("request.invalid", "give what to change: --name, --tag, --untag, --note or --priority")
    run = experiment_at(url, insecure_http, id)
    edited = run.edit(name=name, notes=note, priority=priority, tag=tag or (), untag=untag or ()).experiment
    say(f"{edited.id} is called {edited.name}; tags: {', '.join(edited.tags) or 'none'}")
    if json:
        emit(edited)


@app.command("archive", epilog="Example: ferret experiment archive exp_5f0c")
def archive(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Archive a finished experiment: it is kept, but no longer listed."""
    run = experiment_at(url, insecure_http, id).archive()
    say(f"{run.id} is archived; list archived experiments: ferret experiment list --archived")
    if json:
        emit(run.experiment)


@app.command("unarchive", epilog="Example: ferret experiment unarchive exp_5f0c")
def unarchive(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Move an experiment out of the archive: it is listed again."""
    run = experiment_at(url, insecure_http, id).unarchive()
    say(f"{run.id} is listed again")
    if json:
        emit(run.experiment)


@app.command("delete", epilog="Example: ferret experiment delete exp_5f0c")
def delete(
    id: options.Id,
    yes: options.Yes = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Delete a finished experiment with its rounds, curves, checkpoints and ledger, for good."""
    run = experiment_at(url, insecure_http, id)
    if not yes:
        typer.confirm(f"Delete {run.id} ({run.experiment.name}) with all its results?", abort=True, err=True)
    run.delete()
    say(f"{run.id} is deleted")
    if json:
        emit({"id": run.id, "deleted": True})
