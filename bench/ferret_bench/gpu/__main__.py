"""``python -m ferret_bench.gpu [PART]``, which ``make gpu`` runs: a part, or all, and the page of results."""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Annotated

import torch
import typer

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when triton is imported

from ferret_bench.gpu import page, runner
from ferret_bench.gpu.part import Setup
from ferret_cli.files import write
from ferret_cli.output import say

NO_GPU = """There is no GPU here: torch finds none.
On a machine with one run `make gpu`; docs/operators/gpu.md says what it does and how long it takes.
`make gpu ARGS=--miniature` runs every part at toy size on this machine's processor."""

RESULTS = Path("docs/results/gpu")
SCRATCH = Path(tempfile.gettempdir(), "ferret-gpu")
ALL = "all"


def main(
    part: Annotated[str, typer.Argument(help=f"{', '.join(runner.PARTS)}, or {ALL}.")] = ALL,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the JSON files and the page; steps with results there are skipped.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with the official datasets.")] = None,
    scratch: Annotated[Path, typer.Option(help="Folder for models, 50 GB in all.")] = SCRATCH,
    miniature: Annotated[bool, typer.Option("--miniature", help="Toy sizes, on any machine.")] = False,
    seconds: Annotated[float, typer.Option(help="Time limit of all; a step in progress is ended then.")] = math.inf,
    again: Annotated[bool, typer.Option("--again", help="Repeat finished steps.")] = False,
    only: Annotated[str | None, typer.Option("--step", hidden=True)] = None,
    result: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:
    """Measure on a GPU what can be measured nowhere else."""
    if part not in (*runner.PARTS, ALL):
        raise typer.BadParameter(f"{part!r} is unknown; choose one of {', '.join((*runner.PARTS, ALL))}")
    if not (miniature or torch.cuda.is_available()):
        say(NO_GPU)
        raise typer.Exit(1)
    scratch.mkdir(parents=True, exist_ok=True)
    setup = Setup(miniature, data, scratch)
    if only is not None and result is not None:
        runner.keep(runner.here(runner.part(part).steps(setup)[only], setup), result)
        return
    folder, written = _places(out, setup)
    folder.mkdir(parents=True, exist_ok=True)
    names = runner.PARTS if part == ALL else (part,)
    end = perf_counter() + seconds
    documents = [runner.run(name, setup, folder, again=again, seconds=end - perf_counter()) for name in names]
    print(write(written, page.markdown(folder).encode()))
    if failed := [name for document in documents for name, ended in document["steps"].items() if "error" in ended]:
        say(f"failed: {', '.join(failed)}")
        raise typer.Exit(1)


def _places(out: Path | None, setup: Setup) -> tuple[Path, Path]:
    """Returns the folder of the JSON files and the page: the results', unless another is given or sizes are a toy's."""
    if out is None and not setup.miniature:
        return RESULTS, RESULTS.with_suffix(".md")
    folder = out or setup.scratch / "miniature"
    return folder, folder / "gpu.md"


if __name__ == "__main__":
    typer.run(main)
