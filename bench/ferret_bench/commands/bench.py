"""``ferret bench NAME``"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ferret_cli import options
from ferret_core.discovery import load, names

PACKAGE = "ferret_bench"

app = typer.Typer(add_completion=False)


class _Named(TyperCommand):
    """Its help ends with the names of the benchmarks, which are read from their files."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.epilog = f"Benchmarks: {', '.join(names(PACKAGE))}."
        super().format_help(ctx, formatter)


@app.command(cls=_Named)
def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The benchmark.", show_default=False)],
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Measure only what has a bound, and say whether it holds.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, to see that everything works.")] = False,
    max_seconds: Annotated[
        float,
        typer.Option("--max-seconds", min=1, help="About how long it may take; the rest is skipped."),
    ] = 600,
    json: options.Json = False,
) -> None:
    """Measure time and memory of the methods on this machine, compared with plain ones."""
    from ferret_cli.output import emit, say, table
    from ferret_cli.setup import require_training

    require_training()
    if name not in (known := names(PACKAGE)):
        raise typer.BadParameter(f"{name!r} is unknown; choose one of {', '.join(known)}", param_hint="NAME")
    benchmark = load(PACKAGE, name, "benchmark").Benchmark()
    document = benchmark.run(say, bounds=bounds, quick=quick, max_seconds=max_seconds)
    if json:
        emit(document)
        return
    for shown in benchmark.tables(document):
        print(shown.title)
        table(shown.columns, shown.rows)
