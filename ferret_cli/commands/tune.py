"""``ferret tune FILE``"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options
from ferret_cli.requirements_check import require_training, require_tuning
from ferret_cli.resolve_experiment import connect

if TYPE_CHECKING:
    from ferret_cli.tune.runner import Runner
    from ferret_sdk.service.service import Service

_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


def tune(
    file: options.SpecFile,
    assignments: options.Assignments = None,
    unset: options.Unset = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder of the study; default: NAME-study.", show_default=False),
    ] = None,
    confirm: Annotated[
        int,
        typer.Option("--confirm", metavar="N", min=0, help="Run the best trial on the test split, with N fresh seeds."),
    ] = 0,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", help="Run the trials as experiments of this server; default: in this process.", show_default=False
        ),
    ] = None,
    insecure_http: options.InsecureHttp = False,
    project: options.Project = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="CPU threads; default: all.")] = None,
    json: options.Json = False,
) -> None:
    """Search for the best values in the tune table of FILE; the same command continues an interrupted search.

    Writes best.toml, trials.csv and trials.png into the study's folder.
    """
    from ferret_sdk.http.transport import is_loopback

    require_tuning()
    if url is None:
        require_training()
    service = None if url is None else connect(url, insecure_http)

    from ferret_cli.files import writable
    from ferret_cli.tune.plan import read
    from ferret_cli.tune.search import confirmation_seeds, search

    here = service is None or is_loopback(service.url)
    plan = read(file, assignments or (), unset or (), absolute_paths=here)
    seeds = confirmation_seeds(plan, confirm)
    folder = out or Path(_NOT_IN_NAMES.sub("-", plan.name).strip("-.") + "-study")
    search(plan, writable(folder, "--out"), _runner(service, project, threads), seeds, json=json)


def _runner(service: Service | None, project: str | None, threads: int | None) -> Runner:
    from ferret_cli.tune.runner import run_here, runner_at

    if service is not None:
        return runner_at(service, project)

    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    return run_here
