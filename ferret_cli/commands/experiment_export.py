"""``ferret experiment …``: models, metrics and proofs of an experiment, for use without the server."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say
from ferret_cli.requirements_check import require_training
from ferret_cli.resolve_experiment import experiment_at

if TYPE_CHECKING:
    from ferret_sdk.service.run import Run

app = typer.Typer()


@app.command("export")
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
    average: Annotated[
        bool,
        typer.Option(
            "--average",
            help="The mean of the models of the last rounds up to --round, rebuilt from base model and ledger: of the "
            "last half of the rounds, or from server.average_from on.",
        ),
    ] = False,
    push: Annotated[
        str | None,
        typer.Option(
            "--push",
            metavar="OWNER/NAME",
            help="Also upload it to this repository of the Hugging Face hub, with the token in "
            "HF_TOKEN. Repeating the command resumes the upload.",
        ),
    ] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="With --push: the branch to write to; default: the main one.")
    ] = None,
    public: Annotated[
        bool,
        typer.Option(
            "--public", help=("With --push: everybody may read the repository. Otherwise it must be private.")
        ),
    ] = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Download a checkpoint that transformers can load; every file is checked against its digest.

    The folder also has a model card and a chat template in the format of the training data.
    """
    if average and (best or push is not None):
        raise typer.BadParameter("can be combined only with --round", param_hint="--average")
    if best and round is not None:
        raise typer.BadParameter("give one of the two", param_hint="--round and --best")
    if push is None and (branch is not None or public):
        raise typer.BadParameter("are for --push OWNER/NAME", param_hint="--branch and --public")
    run = experiment_at(url, insecure_http, id)
    if average:
        _export_average(run, run.experiment.round if round is None else round, folder, json)
        return
    files = run.best_checkpoint() if best else run.checkpoint(round)
    number, path = files[0].round, folder.expanduser().resolve()
    pushed = None
    if push is None:
        run.export(path, number)
    else:
        pushed = run.push_to_hub(push, number, folder=path, branch=branch, public=public)
    say(f"round {number} is in {path}" + (f" and at {pushed.url}, commit {pushed.commit}" if pushed else ""))
    if json:
        told = {"id": run.id, "round": number, "checkpoint": str(path), "files": [file.name for file in files]}
        emit({**told, "hub": pushed and pushed._asdict()})
    else:
        print(pushed.url if pushed else path)


def _export_average(run: Run, number: int, folder: Path, json: bool) -> None:

    require_training()

    from ferret_cli import ledger_replay

    path = folder.expanduser().resolve()
    manifest = ledger_replay.replay(run, number, path, lambda record: None, average=True)
    say(f"the mean of the last rounds up to {number} is in {path}, its digest is {manifest.digest}")
    if json:
        emit({"id": run.id, "round": number, "average": True, "digest": manifest.digest, "checkpoint": str(path)})
    else:
        print(path)


class Format(StrEnum):
    """A table, or a tool that follows the experiment."""

    CSV = "csv"
    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"
    WANDB = "wandb"
    TRACKIO = "trackio"


@app.command("export-metrics")
def export_metrics(
    id: options.Id,
    to: Annotated[
        Format,
        typer.Option("--to", help=("csv prints the present metrics; the other tools receive every round as it comes.")),
    ] = Format.CSV,
    dir: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", help="Folder for the tool's files, if not its usual one.", file_okay=False
        ),
    ] = None,
    project: Annotated[str, typer.Option("--project", help="Name under which the tool groups runs.")] = "ferret",
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Export an experiment's metrics to another tool.

    A tool receives parameters, tags and every round until the experiment ends. Stopped and run again, the command
    resumes and writes nothing twice.
    """
    from ferret_sdk.exporters import export_metrics

    run = experiment_at(url, insecure_http, id)
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


@app.command("verify")
def verify(
    id: options.Id, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Rebuild the model from the base model and the ledger, and compare every digest, checkpoints included.

    Each round's hash covers its record and all previous ones: note the last one, and compare it with the hashes in
    receipts.
    """
    require_training()

    from ferret_cli.ledger_replay import verified_records

    run = experiment_at(url, insecure_http, id)
    digest, hashes = run.experiment.base_digest, list[str]()
    for record in verified_records(run):
        digest = record.digest
        hashes.append(record.hash)
        signed = f", {len(record.signatures)} signed" if record.signatures else ""
        told = f"{record.digest[:16]}…  {len(record.contributions)} contributions{signed}"
        say(f"round {record.round:>4}  {told}  verified; hash {record.hash}")
    say(f"{run.id}: {len(hashes)} rounds verified, the model's digest is {digest}")
    if json:
        emit({"id": run.id, "rounds": len(hashes), "digest": digest, "hashes": hashes, "verified": True})


@app.command("replay")
def replay(
    id: options.Id,
    round: Annotated[int, typer.Option("--round", min=0, help="Round to rebuild; 0 is the base model.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="New or empty folder for the checkpoint.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Rebuild the model of any committed round from the base model and the ledger, as a checkpoint for transformers."""
    require_training()

    from ferret_cli import ledger_replay

    run = experiment_at(url, insecure_http, id)
    folder = out.expanduser().resolve()
    manifest = ledger_replay.replay(
        run, round, folder, lambda record: say(f"round {record.round:>4}  {record.digest[:16]}…  verified")
    )
    say(f"round {round} is in {folder}, the model's digest is {manifest.digest}")
    if json:
        emit({"id": run.id, "round": round, "digest": manifest.digest, "checkpoint": str(folder)})
    else:
        print(folder)


@app.command("receipt")
def receipt(
    id: options.Id,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The participant, or a simulated client.")],
    round: Annotated[int, typer.Option("--round", min=1, help="Number of the round.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
) -> None:
    """Print the receipt for a participant's contribution to a committed round, for `ferret receipt verify`."""
    run = experiment_at(url, insecure_http, id)
    emit(run.receipt(round, name))
