"""``ferret paper …``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options

paper = typer.Typer(help="The paper's figures, measured again on this machine.", no_args_is_help=True)


@paper.callback()
def group() -> None:
    """Keeps ``reconstruction`` a command of its own while it is the only one."""


@paper.command()
def reconstruction(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write a PNG and a CSV of each figure here.")],
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, in seconds: to see that it works.")] = False,
    json: options.Json = False,
) -> None:
    """Draw how well updates are reconstructed from their coordinates, against theory and the zeroth-order method."""
    from ferret_cli.output import emit, say
    from ferret_cli.setup import require_drawing

    require_drawing()

    import torch

    from ferret_cli.paper.files import writable
    from ferret_cli.paper.reconstruction import draw, plots

    torch.set_num_threads(1)  # vectors are small here, and sums of losses keep their bits
    folder, drawn = writable(out, "--out"), []
    for figure in draw(folder, plots(quick=quick)):
        say(f"drawn: {figure.png}")
        drawn.append(figure)
    if json:
        emit({"quick": quick, "figures": [figure._asdict() for figure in drawn]})
    else:
        for figure in drawn:
            print(figure.png)
