"""The runs of ``ferret dev bench noise`` as a page and a picture.

``python -m ferret_bench._noise_page docs/results/noise`` reads every run in the folder, ``NAME.json``, and writes
``noise.md`` and ``noise.png`` next to them.

The content of ``noise-remarks.md`` becomes part of the page.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ferret_bench import _markdown
from ferret_cli import plot_style
from ferret_core.aggregation.projection_noise import SHARE
from ferret_core.protocol.formatting import size

CROWDS = (3, 10)
COLOURS = (plot_style.BLUE, plot_style.RED, plot_style.GREEN, plot_style.ORANGE, plot_style.PINK, plot_style.BLACK)
Run = Mapping[str, Any]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ferret_bench._noise_page", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the runs and the page")
    folder: Path = parser.parse_args(arguments).folder
    runs, remarks = read(folder), folder / "noise-remarks.md"
    said = remarks.read_text(encoding="utf-8").strip() if remarks.exists() else ""
    folder.joinpath("noise.md").write_text(page(runs, said), encoding="utf-8")
    with plot_style.applied():
        folder.joinpath("noise.png").write_bytes(plot_style.png(picture(runs)))
    return 0


def read(folder: Path) -> dict[str, Run]:
    """Returns the runs by file name, small models first."""
    runs = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    return dict(sorted(runs.items(), key=lambda item: item[1]["parameters"]))


def page(runs: Mapping[str, Run], remarks: str) -> str:
    about = (
        "`ferret dev bench noise` of several experiments. After 0, 4, 8, … rounds the next round is "
        "applied with and without the noise of its projection. Gain is the loss that the round takes off without "
        "noise, in nats; share is the part of the gain that the noise costs; D is the number of one-bit coordinates, "
        "of all participants together, with which it would cost all of it "
        "([why](../../research/theory.md#that-number-measured)). ± is half of a 95 % interval over the seeds. Each "
        "run's file holds its specification."
    )
    heads = ["Run", "Weights d", "Steps", "Share", "D", "D from K/8", *(f"{count} participants" for count in CROWDS)]
    whole = (
        "Over the run: gains and costs of the probes after 0, 4, 8, … rounds, summed. The last columns are the bytes "
        f"of each participant's coordinates with which the noise costs {SHARE:.0%} of the gain. Only three "
        "participants were measured; ten follow from K·N. The scale of each block, 2 bytes, comes on top."
    )
    columns = ["Run", "Rounds done", "Local rate", "Gain", "Noise, % of the weights", "Share", "D", "ρ̂ at its cap"]
    again = (
        "```console\nferret dev bench noise experiment.toml --json > docs/results/noise/NAME.json\n"
        "python -m ferret_bench._noise_page docs/results/noise\n```"
    )
    parts = ["# The share of a round that noise costs", about, "![Share by round](noise.png)", remarks, "## Over a run"]
    parts += [whole, _markdown.table(heads, map(_row, runs, runs.values()), left=1), "## By round"]
    by_round = [row for name, run in runs.items() for row in _rounds(name, run)]
    return "\n\n".join([part for part in [*parts, _markdown.table(columns, by_round, left=1), again] if part]) + "\n"


def _row(name: str, run: Run) -> list[str]:
    own, *few = run["run"]
    needed = ["–" if own["dimension"] is None else _needed(own["dimension"], count) for count in CROWDS]
    d = f"{run['parameters']:,}"
    return [
        _link(name),
        d,
        _steps(run),
        _share(own),
        _dimension(own),
        _number(few[0]["dimension"]) if few else "–",
        *needed,
    ]


def _rounds(name: str, run: Run) -> Iterator[list[str]]:
    for point in run["points"]:
        own = point["K"][0]
        capped = f"{own['capped']} of {point['seeds']}"
        figures = [f"{point['rate']:.3f}", f"{point['gain']:.3f}", f"{own['noise_percent']:.1f}"]
        yield [_link(name), str(point["round"]), *figures, _share(own), _dimension(own), capped]


def _steps(run: Run) -> str:
    local = run["experiment"]["algorithm"]["local"]
    return f"{local['optimizer']} {local['learning_rate']:g}"


def _link(name: str) -> str:
    return f"[{name}]({name}.json)"


def _share(found: Run) -> str:
    return "–" if found["share"] is None else f"{100 * found['share']:.1f} %"


def _dimension(found: Run) -> str:
    half = found["dimension_half"]
    return _number(found["dimension"]) + ("" if half is None else f" ± {half:,.0f}")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _needed(dimension: float, participants: int) -> str:
    return size(round(max(0.0, dimension) / SHARE / participants / 8))


def picture(runs: Mapping[str, Run]) -> Figure:
    """Draws the share of a round's gain against the rounds before it."""
    figure = Figure()
    axes: Any = figure.subplots()
    for colour, (name, run) in zip(COLOURS, runs.items(), strict=False):
        shares = [(point["round"], 100 * share) for point in run["points"] if (share := point["K"][0]["share"])]
        axes.plot(*zip(*shares, strict=True), "o-", color=colour, label=name)
    axes.axhline(100 * SHARE, linestyle="--", color=plot_style.GREY, label="a fifth")
    axes.set(xlabel="rounds done", ylabel="share of the next round's gain, %")
    axes.set_title("What the noise of the projection costs")
    axes.legend()
    return figure


if __name__ == "__main__":
    raise SystemExit(main())
