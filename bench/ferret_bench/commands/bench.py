"""``ferret dev bench NAME [FILE]``"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from ferret_cli import options
from ferret_core.discovery import load, names

if TYPE_CHECKING:
    from ferret_bench.base import Benchmark

PACKAGE = "ferret_bench"

app = typer.Typer(add_completion=False)


class _Named(TyperCommand):
    """Its help ends with the names of the benchmarks, which are read from their files."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.epilog = f"{self.epilog}\n\nBenchmarks: {', '.join(names(PACKAGE))}."
        super().format_help(ctx, formatter)


@app.command(cls=_Named, epilog="Example: ferret dev bench projection --quick")
def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The benchmark.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="For noise, leakage, plan and records: the experiment to measure.",
            show_default=False,
        ),
    ] = None,
    assignments: options.Assignments = None,
    bounds: Annotated[bool, typer.Option("--bounds", help="Measure only ratios with a bound, and check it.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to see that everything works.")] = False,
    secure: Annotated[bool, typer.Option("--secure", help="For edge: sites that sum under masks.")] = False,
    max_seconds: Annotated[
        float,
        typer.Option("--max-seconds", min=1, help="Approximate time limit; the rest is skipped."),
    ] = 600,
    json: options.Json = False,
) -> None:
    """Measure time and memory of the methods, and of simple baselines, on this machine."""
    from ferret_cli.output import emit, say, table
    from ferret_cli.requirements_check import require_training

    require_training()
    if name not in (known := names(PACKAGE)):
        raise typer.BadParameter(f"{name!r} is unknown; choose one of {', '.join(known)}", param_hint="NAME")
    benchmark = _made(load(PACKAGE, name, "benchmark").Benchmark, name, file, assignments or (), secure=secure)
    document = benchmark.run(say, bounds=bounds, quick=quick, max_seconds=max_seconds)
    if json:
        emit(document)
        return
    for shown in benchmark.tables(document):
        print(shown.title)
        table(shown.columns, shown.rows)


def _made(
    benchmark: Any, name: str, file: Path | None, assignments: Sequence[str], *, secure: bool = False
) -> Benchmark:
    """Creates the benchmark, with the experiment in ``file`` if given."""
    takes = signature(benchmark).parameters
    if secure and "secure" not in takes:
        raise typer.BadParameter(f"{name} has no secure sums: leave it out", param_hint="--secure")
    if file is not None and "experiment" not in takes:
        raise typer.BadParameter(f"{name} measures no experiment: leave {file} out", param_hint="FILE")
    if assignments and file is None:
        raise typer.BadParameter("changes the experiment in FILE: give FILE too, or leave it out", param_hint="--set")
    if secure:
        return benchmark(secure=True)
    if file is None:
        return benchmark()
    from ferret_cli import spec_input

    return benchmark(experiment=spec_input.load(file, assignments))
