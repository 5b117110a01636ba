"""``ferret dev paper …``"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ferret_bench.reproduce.reruns import studies
from ferret_cli import options

app = typer.Typer(
    name="paper",
    help="Run the paper's tables and figures again on this machine.",
    no_args_is_help=True,
    add_completion=False,
)

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the page, CSV and PNG, and for the runs.")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="PATH", help="Base model, a folder or a hub name; may be repeated."),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape", metavar="SHAPE", help="A model of random weights: llama-3b, llama2-7b, …, or HIDDEN/LAYERS."
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder with the official files; default from the hub.", file_okay=False
    ),
]
Algorithms = Annotated[
    str | None, typer.Option("--algorithms", metavar="A,B", help="Rows to run; all of them with `all`.")
]
Datasets = Annotated[str | None, typer.Option("--datasets", metavar="A,B", help="Datasets to run.")]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="Runs per cell, with seeds 1 to N.")]
Rounds = Annotated[int | None, typer.Option("--rounds", min=1, help="Rounds of every run; default the paper's.")]
Examples = Annotated[int | None, typer.Option("--examples", min=1, help="Held-out examples for the loss.")]
Generate = Annotated[int | None, typer.Option("--generate", min=0, help="Number of these to answer for Rouge-L.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A value for every run; ROW.KEY or DATASET.KEY for some; may be repeated."
    ),
]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="TOML with options of rows and datasets.", dir_okay=False),
]
Together = Annotated[int, typer.Option("--together", min=1, help="Number of runs at the same time.")]
Retry = Annotated[bool, typer.Option("--retry", help="Run failed runs again.")]
Simulate = Annotated[bool, typer.Option("--simulate", help="Run in this process, without a service; same figures.")]
Url = Annotated[
    str | None,
    typer.Option("--url", help="A service that runs already, instead of the command's own.", show_default=False),
]
Token = Annotated[str | None, typer.Option("--token", help="Token of the server at --url.", show_default=False)]


@app.command(epilog="Example: ferret dev paper reconstruction --out pictures --quick")
def reconstruction(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Write a PNG and a CSV of each figure here.")],
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, in seconds: to see that it works.")] = False,
    json: options.Json = False,
) -> None:
    """Draw how well updates are reconstructed from their coordinates, with theory and the zeroth-order method."""
    from ferret_cli.output import emit, say
    from ferret_cli.requirements_check import require_drawing

    require_drawing()

    import torch

    from ferret_bench.reproduce.reconstruction import draw, plots
    from ferret_cli.files import writable

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


class _Named(TyperCommand):
    """Its help ends with the names of the tables or figures, which are read from their files."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        known = studies.names("table" if self.name == "table" else "figure")
        self.epilog = f"{self.epilog}\n\nNAME is one of {', '.join(known)}."
        super().format_help(ctx, formatter)


def _rerun(kind: studies.Kind, doc: str) -> Callable[..., None]:
    """The command for tables or the one for figures, which differ in the names they know."""

    def command(
        name: Annotated[str, typer.Argument(metavar="NAME", help="Which one; see below.", show_default=False)],
        out: Out,
        model: Models = None,
        shape: Shapes = None,
        data: Data = None,
        algorithms: Algorithms = None,
        datasets: Datasets = None,
        seeds: Seeds = None,
        rounds: Rounds = None,
        examples: Examples = None,
        generate: Generate = None,
        assignments: Assignments = None,
        settings: SettingsFile = None,
        together: Together = 1,
        retry: Retry = False,
        simulate: Simulate = False,
        url: Url = None,
        token: Token = None,
        json: options.Json = False,
    ) -> None:
        from ferret_cli.requirements_check import require_drawing, require_server, require_training

        require_training()
        require_drawing()
        if not (simulate or url):
            require_server()

        from ferret_bench.reproduce.reruns import rerun
        from ferret_bench.reproduce.reruns.grid import Asked

        asked = Asked(
            models=tuple(model or ()),
            data=data,
            rows=_names(algorithms),
            datasets=_names(datasets),
            seeds=seeds,
            rounds=rounds,
            examples=examples,
            generate=generate,
        )
        where = rerun.Where(simulate=simulate, url=url, token=token, together=together)
        over = rerun.Over(settings, tuple(assignments or ()))
        rerun.rerun(kind, name, out, asked, where, over, shapes=tuple(shape or ()), retry=retry, json=json)

    command.__doc__ = doc
    return command


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


app.command("table", cls=_Named, epilog="Example: ferret dev paper table cost --out results")(
    _rerun(
        "table",
        """Run one of the paper's tables again and show it with the paper's own numbers.

        After an interruption, the same command continues where it stopped.
        """,
    )
)
app.command("figure", cls=_Named, epilog="Example: ferret dev paper figure frontier --out results")(
    _rerun(
        "figure",
        """Run one of the paper's figures that need training again, and draw it.

        After an interruption, the same command continues where it stopped.
        """,
    )
)


@app.command(epilog="Example: ferret dev paper tune frontier --out results")
def tune(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The figure with the rows to tune, e.g. frontier.")],
    out: Out,
    model: Models = None,
    shape: Shapes = None,
    data: Data = None,
    algorithms: Algorithms = None,
    datasets: Datasets = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs per candidate, with seeds from 1001 on.")] = 1,
    rounds: Rounds = None,
    examples: Examples = None,
    assignments: Assignments = None,
    settings: SettingsFile = None,
    json: options.Json = False,
) -> None:
    """Find each row's local training on the validation split, with as many trials for every row.

    Writes chosen.toml, which `ferret dev paper figure NAME --settings` takes. After an interruption, the same command
    continues where it stopped.
    """
    from ferret_cli.requirements_check import require_training

    require_training()

    from ferret_bench.reproduce.reruns import rerun
    from ferret_bench.reproduce.reruns.grid import Asked

    asked = Asked(
        models=tuple(model or ()),
        data=data,
        rows=_names(algorithms),
        datasets=_names(datasets),
        rounds=rounds,
        examples=examples,
    )
    over = rerun.Over(settings, tuple(assignments or ()))
    rerun.tune("figure", name, out, asked, over, seeds=seeds, shapes=tuple(shape or ()), json=json)


@app.command(epilog="Example: ferret dev paper page frontier --out results")
def page(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The table or figure of the page.")],
    out: Out,
    settings: SettingsFile = None,
    json: options.Json = False,
) -> None:
    """Write the page of a table or figure again from the runs recorded in DIR; nothing is run."""
    from ferret_cli.requirements_check import require_drawing

    require_drawing()

    from ferret_bench.reproduce.reruns import rerun

    rerun.rewrite(name, out, rerun.Over(settings, ()), json=json)
