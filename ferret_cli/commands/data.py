"""``ferret data …``"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, table
from ferret_cli.requirements_check import require_drawing, require_training
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_cli.data.partition_summary import Holding
    from ferret_core.protocol.spec import ExperimentSpec

app = typer.Typer(
    help="Look at the data of an experiment and how they are split over its clients.", no_args_is_help=True
)


@app.command("show", epilog="Example: ferret data show examples/dolly.toml --out pictures")
def show(
    file: options.SpecFile,
    assignments: options.Assignments = None,
    unset: options.Unset = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write partition.png and partition.csv here.", show_default=False),
    ] = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Also count tokens, and examples that are too long.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Show which examples each simulated client of the experiment in FILE holds; draw it with --out."""
    from ferret_cli import spec_input

    require_training()
    if out is not None:
        require_drawing()

    from ferret_cli.data.partition_summary import document, holdings, tokenised_by
    from ferret_cli.files import writable
    from ferret_core import catalog
    from ferret_core.experiment.federated_data import deal

    spec = catalog.resolve(spec_input.load(file, assignments or (), unset or ())).spec
    if not spec.participants.simulated:
        message = "real participants bring their own data, so nothing is split: set it to at least 1"
        raise FerretError.of_field("spec.invalid", "participants.simulated", 0, message)
    folder = None if out is None else writable(out, "--out")
    dealt = deal(spec)
    held = holdings(dealt, tokenised_by(spec.model, spec.prompt) if tokens else None)
    files = {} if folder is None else _draw(folder, held, spec)
    for path in files.values():
        say(f"written: {path}")
    chosen = {"dataset": spec.dataset.name, "partition": spec.partition.name, "split": spec.evaluation.split}
    found = {**chosen, **document(held, dealt.held_out), **files}
    if json:
        emit(found)
    else:
        _print(found)


def _draw(folder: Path, held: Sequence[Holding], spec: ExperimentSpec) -> dict[str, str]:
    from ferret_cli import plot_style
    from ferret_cli.data.partition_summary import rows
    from ferret_cli.data.plot import draw
    from ferret_cli.files import to_csv, write

    chosen = ", ".join(f"{name} = {value}" for name, value in spec.partition.options.items())
    how = f"{spec.partition.name} ({chosen})" if chosen else spec.partition.name
    title = f"{spec.dataset.name} over {len(held):,} clients, {how}"
    with plot_style.applied():
        picture = plot_style.png(draw(held, title))
    return {
        "csv": str(write(folder / "partition.csv", to_csv(rows(held)).encode())),
        "png": str(write(folder / "partition.png", picture)),
    }


def _print(found: dict[str, Any]) -> None:

    together = {**found, "labels": len(found["labels"])}
    shown: list[tuple[str | None, ...]] = [
        (name, *(f"{spread[part]:,}".removesuffix(".0") for part in ("min", "median", "max")), f"{together[name]:,}")
        for name, spread in found["per_client"].items()
    ]
    split, labels = found["split"], found["held_out_labels"]
    shown.append((f"{split} examples", None, None, None, f"{sum(labels.values()):,}"))
    shown.append((f"{split} labels", None, None, None, f"{len(labels):,}"))
    table([f"{found['clients']:,} clients", "least", "median", "most", "all"], shown)
