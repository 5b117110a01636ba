"""The runs of ``ferret bench noise`` as a page and a picture: ``python -m ferret_bench._noise_page docs/results/noise``
reads every run in the folder, ``NAME.json``, and writes ``noise.md`` and ``noise.png`` next to them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ferret_bench import _markdown
from ferret_cli import plot_style
from ferret_core.protocol.formatting import size

TIMES = 4
"""Recommended ratio of a round's coordinates to D: noise then takes a fifth of the best step's gain."""
CROWDS = (3, 10, 100)
Run = Mapping[str, Any]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ferret_bench._noise_page", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of the runs and the page")
    folder: Path = parser.parse_args(arguments).folder
    runs = read(folder)
    folder.joinpath("noise.md").write_text(page(runs), encoding="utf-8")
    with plot_style.applied():
        folder.joinpath("noise.png").write_bytes(plot_style.png(picture(runs)))
    return 0


def read(folder: Path) -> dict[str, Run]:
    """Returns the runs by file name, small models first."""
    runs = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    return dict(sorted(runs.items(), key=lambda item: item[1]["parameters"]))


def page(runs: Mapping[str, Run]) -> str:
    heads = ["Run", "Weights d", "D", "Of d", "Step without noise, A", *(f"{count} participants" for count in CROWDS)]
    seeds = min(len(run["points"][0]["noise_ratio"]) for run in runs.values())
    about = (
        "`ferret bench noise` of several experiments. D is the number of one-bit coordinates whose noise costs as much "
        f"as a round's own step ([why](../../theory.md#that-number-measured)), ± half of a 95 % interval over {seeds} "
        "seeds. The last columns are the bytes of each participant's coordinates with "
        f"K·N = {TIMES}·D: noise then takes a fifth of what the best step gains. Only "
        "three participants were measured; the other columns follow from the formula. The scale of each block, 4 bytes "
        "for every tensor unless `blocks` says otherwise, comes on top: it is the larger part where a number is small."
    )
    again = (
        "```console\nferret bench noise experiment.toml --json > docs/results/noise/NAME.json\n"
        "python -m ferret_bench._noise_page docs/results/noise\n```"
    )
    table = _markdown.table(heads, map(_row, runs, runs.values()), left=1)
    parts = ["# How many bytes a model needs", about, "![D against the number of weights](noise.png)", table]
    return "\n\n".join([*parts, again]) + "\n"


def _row(name: str, run: Run) -> list[str]:
    found = f"{run['dimension']:,.0f}"
    if run["dimension_half"] is not None:
        found += f" ± {run['dimension_half']:,.0f}"
    share = f"1/{run['parameters'] / run['dimension']:,.0f}"
    needed = [size(round(TIMES * run["dimension"] / count / 8)) for count in CROWDS]
    return [f"[{name}]({name}.json)", f"{run['parameters']:,}", found, share, f"{run['clean']:.2f}", *needed]


def picture(runs: Mapping[str, Run]) -> Figure:
    """Draws D with its interval against d, and the line on which every weight would count."""
    figure = Figure()
    axes: Any = figure.subplots()
    weights = [run["parameters"] for run in runs.values()]
    found = [run["dimension"] for run in runs.values()]
    axes.errorbar(weights, found, [run["dimension_half"] or 0 for run in runs.values()], fmt="o", color=plot_style.BLUE)
    for name, d, dimension in zip(runs, weights, found, strict=True):
        axes.annotate(name, (d, dimension), xytext=(8, 6), textcoords="offset points")
    ends = [min(weights) / 2, max(weights) * 2]
    axes.plot(ends, ends, "--", color=plot_style.GREY, label="D = d")
    axes.set(xscale="log", yscale="log", xlabel="weights d", ylabel="D, one-bit coordinates")
    axes.set_title("Coordinates at which the noise costs as much as a round's step")
    axes.legend()
    return figure


if __name__ == "__main__":
    raise SystemExit(main())
