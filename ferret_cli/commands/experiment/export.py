"""``ferret experiment export ID FOLDER``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options

if TYPE_CHECKING:
    from ferret_sdk.service.run import Run


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
            help="Put it into this repository of the Hugging Face hub too, by the token in HF_TOKEN. The same command "
            "again goes on where it was.",
        ),
    ] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="With --push: the branch to write to; default: the main one.")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="With --push: everybody may read the repository. Else it must be private.")
    ] = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Download a checkpoint that transformers can load; every file is checked against its digest.

    Beside its files the folder has a model card and a chat template that asks in training's words.
    """
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_sdk.service.service import Service

    if average and (best or push is not None):
        raise typer.BadParameter("stands alone, or with --round", param_hint="--average")
    if best and round is not None:
        raise typer.BadParameter("give one of the two", param_hint="--round and --best")
    if push is None and (branch is not None or public):
        raise typer.BadParameter("are for --push OWNER/NAME", param_hint="--branch and --public")
    run = experiment(Service(url, insecure_http=insecure_http), id)
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
    from ferret_cli.output import emit, say
    from ferret_cli.requirements_check import require_training

    require_training()

    from ferret_cli.ledger_replay import replay

    path = folder.expanduser().resolve()
    manifest = replay(run, number, path, lambda record: None, average=True)
    say(f"the mean of the last rounds up to {number} is in {path}, its digest is {manifest.digest}")
    if json:
        emit({"id": run.id, "round": number, "average": True, "digest": manifest.digest, "checkpoint": str(path)})
    else:
        print(path)
