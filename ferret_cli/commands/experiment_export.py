"""``ferret experiment …``: models, metrics and proofs of an experiment, for use without the server."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, show_line
from ferret_cli.requirements_check import require_training
from ferret_cli.resolve_experiment import experiment_at
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_sdk.service.run import Run

app = typer.Typer()


@app.command("export", epilog="Example: ferret experiment export latest tuned --best")
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

    A round with a dropped checkpoint is rebuilt here from the base model and the ledger, without --push. The folder
    also has a model card and a chat template in the format of the training data.
    """
    if best and round is not None:
        raise typer.BadParameter("give one of the two", param_hint="--round and --best")
    if push is None and (branch is not None or public):
        raise typer.BadParameter("are for --push OWNER/NAME", param_hint="--branch and --public")
    run = experiment_at(url, insecure_http, id)
    path = folder.expanduser().resolve()
    if push is None and not best and round is not None and not _is_kept(run, round):
        say(f"the checkpoint of round {round} is not kept: it is rebuilt from the ledger")
        _rebuild(run, round, path, as_json=json)
        return
    files = run.best_checkpoint() if best else run.checkpoint(round)
    number = files[0].round
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


def _is_kept(run: Run, number: int) -> bool:
    """Returns False for a committed round without a checkpoint; other rounds are left to the server."""
    return number > run.experiment.round or any(file.round == number for file in run.artifacts())


class Format(StrEnum):
    """A table, or a tool that follows the experiment."""

    CSV = "csv"
    TENSORBOARD = "tensorboard"
    MLFLOW = "mlflow"
    WANDB = "wandb"
    TRACKIO = "trackio"


@app.command("export-metrics", epilog="Example: ferret experiment export-metrics latest --to tensorboard --dir runs")
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


@app.command("verify", epilog="Example: ferret experiment verify latest")
def verify(
    id: options.Id,
    sums: Annotated[
        bool,
        typer.Option("--sums", help="Also repeat each secure sum from its transcript and the masked vectors."),
    ] = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Rebuild the model from the base model and the ledger, and compare every digest, checkpoints included.

    Each round's hash covers its record and all previous ones: note the last one, and compare it with the hashes in
    receipts.
    """
    require_training()

    from ferret_cli.ledger_replay import verified_records
    from ferret_core.privacy.accounting import epsilon_of

    run = experiment_at(url, insecure_http, id)
    digest, hashes, releases = run.experiment.base_digest, list[str](), 0
    for record in verified_records(run, sums=sums):
        digest = record.digest
        hashes.append(record.hash)
        releases += sum(group.releases or 0 for group in record.groups)
        signed = f", {len(record.signatures)} signed" if record.signatures else ""
        repeated = ", sum repeated" if sums and record.groups else ""
        told = f"{record.digest[:16]}…  {len(record.contributions)} contributions{signed}{repeated}"
        show_line(f"round {record.round:>4}  {told}  verified; hash {record.hash}", as_json=json)
    show_line(f"{run.id}: {len(hashes)} rounds verified, the model's digest is {digest}", as_json=json)
    if releases:
        privacy = run.specification().privacy
        with suppress(FerretError):  # dp-accounting may be missing
            spent = epsilon_of(privacy.rate, privacy.noise_multiplier or 0, releases, privacy.delta)
            show_line(f"records: ε = {spent:.2f} at δ = {privacy.delta:g} after {releases} attempts", as_json=json)
    if json:
        emit({"id": run.id, "rounds": len(hashes), "digest": digest, "hashes": hashes, "verified": True})


@app.command("replay", epilog="Example: ferret experiment replay latest round-7 --round 7")
def replay(
    id: options.Id,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="New or empty folder for the checkpoint.")],
    round: Annotated[int, typer.Option("--round", min=0, help="Round to rebuild; 0 is the base model.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Rebuild the model of any committed round from the base model and the ledger, as a checkpoint for transformers."""
    _rebuild(experiment_at(url, insecure_http, id), round, folder.expanduser().resolve(), as_json=json)


def _rebuild(run: Run, round: int, folder: Path, *, as_json: bool) -> None:
    require_training()

    from ferret_cli import ledger_replay

    manifest = ledger_replay.replay(
        run, round, folder, lambda record: say(f"round {record.round:>4}  {record.digest[:16]}…  verified")
    )
    say(f"round {round} is in {folder}, the model's digest is {manifest.digest}")
    if as_json:
        files = list(manifest.files)
        emit({"id": run.id, "round": round, "digest": manifest.digest, "checkpoint": str(folder), "files": files})
    else:
        print(folder)
