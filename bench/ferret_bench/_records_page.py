"""The run of ``ferret dev bench records`` as a page and a picture.

``python -m ferret_bench._records_page docs/results/records/records.json`` writes ``records.md`` and ``records.png``
next to the run. The content of ``records-remarks.md`` becomes part of the page.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.figure import Figure

from ferret_bench import _markdown
from ferret_bench.measure.statistics import interval
from ferret_cli import plot_style
from ferret_core.protocol.formatting import size
from ferret_core.secure.roster import survivors_needed

Run = Mapping[str, Any]
NAMES = {
    "ferret": ("Ferret", plot_style.BLUE, "-"),
    "fedavg": ("FedAvg", plot_style.RED, "--"),
    "fedavg_without_noise": ("FedAvg without noise: no protection", plot_style.GREY, ":"),
}
ABOUT = """\
`ferret dev bench records` with `{model}`, {parameters:,} weights, and {dataset}: {sites} sites, {rounds} rounds.
Each example is protected with ε = {epsilon:g} and δ = {delta:g} ([record-level
privacy](../../reference/record-privacy.md)), noise multiplier {noise_multiplier:.3g}. A site draws {batch} of its
{records_least:,} or more examples in a round, on average. Ferret sends K = {K:,} coordinates; K\\* is {useful:,.0f}.
FedAvg's sites draw as many examples, give each gradient the same length, and add noise for the same ε to every weight.
The noise of both is added by the sites, {honest} of which are taken to be honest.

The rate of each row is the best of {rates} in one run on the validation split. Losses are on {examples} test examples,
in nats per token; ± is half of a 95 % interval over {seeds} runs, which differ in the draws of examples and noise."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ferret_bench._records_page", description=__doc__)
    parser.add_argument("run", type=Path, help="document of the run")
    path: Path = parser.parse_args(arguments).run
    run, remarks = json.loads(path.read_text(encoding="utf-8")), path.with_name(f"{path.stem}-remarks.md")
    said = remarks.read_text(encoding="utf-8").strip() if remarks.exists() else ""
    path.with_suffix(".md").write_text(page(run, said, path.stem), encoding="utf-8")
    with plot_style.applied():
        path.with_suffix(".png").write_bytes(plot_style.png(picture(run)))
    return 0


def page(run: Run, remarks: str, name: str) -> str:
    """Renders the document in Markdown; ``name`` is that of its files."""
    heads = ["algorithm", "sent by a site in a round", "rate", "loss before", "loss after", "gain"]
    trials = ["algorithm", "rate", "validation loss"]
    again = (
        f"The experiment is [{name}.toml]({name}.toml), the run [{name}.json]({name}.json).\n\n```console\n"
        f"ferret dev bench records docs/results/records/{name}.toml --max-seconds "
        f"{run['asked']['max_seconds']:.0f} --json > {name}.json\n"
        f"python -m ferret_bench._records_page {name}.json\n```"
    )
    parts = ["# The loss under record-level privacy", _about(run), remarks, f"![Loss by round]({name}.png)"]
    parts += [_markdown.table(heads, [_row(run, method) for method in NAMES], left=1), "## Rates"]
    rows = [[NAMES[each["method"]][0], f"{each['rate']:g}", _loss(each["loss"])] for each in run["trials"]]
    parts += [_markdown.table(trials, rows, left=1), "## Run it again", again]
    return "\n\n".join(part for part in parts if part) + "\n"


def _about(run: Run) -> str:
    experiment, sites = run["experiment"], run["experiment"]["participants"]["simulated"]
    least, colluders = (experiment["secure"][name] for name in ("least", "colluders"))
    return ABOUT.format(
        **{**experiment["privacy"], **run},
        dataset=experiment["dataset"]["name"],
        sites=sites,
        honest=survivors_needed(sites, least, colluders) - colluders,
        rounds=experiment["rounds"],
        K=experiment["algorithm"]["K"],
        examples=experiment["evaluation"]["examples"],
        rates=_listed(sorted({trial["rate"] for trial in run["trials"]})),
        seeds=len({each["seed"] for each in run["runs"]}),
    )


def _listed(values: list[float]) -> str:
    *first, last = (f"{value:g}" for value in values)
    return f"{', '.join(first)} and {last}" if first else last


def _loss(value: float | None) -> str:
    return "diverged" if value is None else f"{value:.3f}"


def _row(run: Run, method: str) -> list[str]:
    runs = [each for each in run["runs"] if each["method"] == method]
    gains = [each["losses"][0] - each["losses"][-1] for each in runs]
    before, after = (fmean(each["losses"][place] for each in runs) for place in (0, -1))
    spread = interval(gains)
    gain = f"{fmean(gains):.3f}" + (f" ± {spread.half:.3f}" if spread else "")
    sent = size(round(fmean(each["bytes"] for each in runs)))
    return [NAMES[method][0], sent, f"{runs[0]['rate']:g}", f"{before:.3f}", f"{after:.3f}", gain]


def picture(run: Run) -> Figure:
    """Draws the loss of each run by round."""
    figure = Figure()
    axes: Any = figure.subplots()
    for method, (label, colour, line) in NAMES.items():
        for number, each in enumerate(each for each in run["runs"] if each["method"] == method):
            axes.plot(each["losses"], line, color=colour, label=label if number == 0 else None)
    privacy = run["experiment"]["privacy"]
    axes.set(xlabel="round", ylabel="loss on test examples, nats per token")
    axes.set_title(f"Each example protected with ε = {privacy['epsilon']:g}: a line for each run")
    axes.legend()
    return figure


if __name__ == "__main__":
    raise SystemExit(main())
