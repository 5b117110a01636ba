"""One page in Markdown: our figures with the paper's, and all information to judge or repeat them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ferret_bench._markdown import plain, table
from ferret_bench.reproduce.reruns import tables
from ferret_bench.reproduce.reruns.grid import Cell
from ferret_bench.reproduce.reruns.results import Line, Printed, Results
from ferret_bench.reproduce.reruns.studies import Study
from ferret_core.protocol.formatting import size
from ferret_core.protocol.spec import ExperimentSpec

PAPER = (
    "Shu et al., *Ferret: Federated Full-Parameter Tuning at Scale for Large Language Models*, ICML 2025, "
    "arXiv:2409.06277"
)


@dataclass(frozen=True)
class Page:
    """A page. ``picture`` is the name of a file next to it, None if the study has no picture.

    ``remarks`` are a reader's remarks on the figures, in Markdown. Their first line is the page's title if it is one
    (``# Title``): it distinguishes the pages of one study.
    """

    study: Study
    paper: Printed
    results: Results
    lines: Sequence[Line]
    picture: str | None
    command: str
    written: str
    remarks: str = ""

    def markdown(self) -> str:
        return "\n\n".join(part for part in self._parts() if part) + "\n"

    def _parts(self) -> Iterable[str]:
        title, remarks = self._title_and_remarks()
        yield f"# {title}"
        yield f"{self.paper.where}. {self.study.lead}"
        yield _alert(self.results)
        yield f"![{self.study.title}]({self.picture})" if self.picture else ""
        yield f"## What it shows\n\n{remarks}" if remarks else ""
        yield from self._tables()
        yield "## The paper, and what differs"
        yield _list((*self.paper.says, *self.paper.notes))
        yield _failures(self.results)
        yield from self._search()
        yield "## How it was run"
        yield _list(f"{plain(name)}: {plain(value)}" for name, value in _facts(self.study, self.results))
        yield f"```console\n{self.command}\n```"
        yield _options(self.results)
        yield f"Written {self.written}. The paper: {PAPER}."

    def _title_and_remarks(self) -> tuple[str, str]:
        first, _, rest = self.remarks.partition("\n")
        return (first.removeprefix("# "), rest.strip()) if first.startswith("# ") else (self.study.title, self.remarks)

    def _tables(self) -> Iterable[str]:
        titles = {column.dataset: column.title for column in self.results.grid.columns}
        for dataset, title in titles.items():
            yield f"## {title}"
            found = [line for line in self.lines if line.dataset == dataset]
            if self.study.reference is None:
                yield tables.table(found, self.study.quantities)
            else:
                yield from self._compared(dataset, found, self.study.reference)

    def _compared(self, dataset: str, found: Sequence[Line], reference: str) -> Iterable[str]:
        """Compares model by model, as figures of two models are unrelated."""
        columns = [column for column in self.results.grid.columns if column.dataset == dataset]
        for column in columns:
            if len(columns) > 1:
                yield f"### {column.model}"
            lines = [line for line in found if line.model == column.model]
            yield tables.compared(lines, self.study.quantities, reference)
            score = next(quantity for quantity in self.study.quantities if quantity.better)
            yield _list(tables.verdicts(self.results, column, score, reference))
            yield tables.times_to_target(self.results, column, reference)

    def _search(self) -> Iterable[str]:
        for place in dict.fromkeys((run.dataset, run.model) for run in self.results.trials):
            found = [run for run in self.results.trials if (run.dataset, run.model) == place]
            titles = {column.dataset: column.title for column in self.results.grid.columns}
            yield f"## The search on {titles.get(place[0], place[0])}, {place[1]}"
            yield from tables.trial_tables(self.results.grid.rows, found)


def _alert(results: Results) -> str:
    """Returns the list of missing runs, for the top, so that nobody takes the page for complete."""
    waiting = len(results.grid.cells) - len(results.ended)
    said = [f"Not in this installation: {', '.join(results.grid.skipped)}."] if results.grid.skipped else []
    if waiting:
        said.append(f"{waiting} of {len(results.grid.cells)} runs have not ended yet.")
    if failed := len(results.failures()):
        said.append(f"{failed} of {len(results.grid.cells)} runs failed; their errors are below.")
    return f"> {' '.join(said)}" if said else ""


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _failures(results: Results) -> str:
    found = results.failures()
    if not found:
        return ""
    rows = [(plain(cell.title), plain(str(error.get("detail", "")))) for cell, error in found]
    return f"## Runs that failed\n\n{table(('Run', 'Error'), rows, left=2)}"


def _facts(study: Study, results: Results) -> Iterable[tuple[str, str]]:
    grid, runs = results.grid, list(results.ended.values())
    for column in grid.columns:
        specs = [cell.spec for cell in grid.cells if cell.column == column]
        rounds = sorted({spec.rounds for spec in specs})
        yield f"{column.title}, {column.model}", f"{_who(specs[0])}; {_rounds(rounds)}; {_scored(specs[0])}"
    yield "Seeds", _seeds(study, max(cell.seed for cell in grid.cells))
    if runs:
        counted = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
        yield "Time", f"{_duration(sum(run.seconds for run in runs))} over {counted}"
    for place in {json.dumps(run.machine, sort_keys=True): run.machine for run in runs}.values():
        yield "Machine", _machine(place)
        yield "Versions", ", ".join(f"{name} {number}" for name, number in place.get("versions", {}).items()) or "–"


def _seeds(study: Study, last: int) -> str:
    if last == 1:
        return "1"
    spread = "half of a 95 % interval" if study.reference else "one standard deviation over the seeds"
    return f"1 to {last}; ± and bars are {spread}"


def _who(spec: ExperimentSpec) -> str:
    split, who = _choice(spec.partition.model_dump()), spec.participants
    share = "all" if who.fraction == 1 else who.sample_size(who.simulated)
    return f"{split} split over {who.simulated} clients, {share} of them in a round"


def _scored(spec: ExperimentSpec) -> str:
    scored = spec.evaluation
    answers = f", Rouge-L on {scored.generate_examples} answers" if scored.generate_examples else ""
    return f"loss on {scored.examples} held-out example{'s' if scored.examples > 1 else ''}{answers}"


def _options(results: Results) -> str:
    """Returns the options of each row on each dataset with all defaults; for each model if these differ."""
    places: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in results.grid.cells:
        places.setdefault((cell.row.name, cell.column.dataset), {}).setdefault(_written(cell), cell)
    rows = [
        (cell.row.label, _where(cell, alone=len(ways) == 1), f"`{written}`", str(cell.spec.rounds))
        for ways in places.values()
        for written, cell in ways.items()
    ]
    return table(("Row", "Dataset", "Options", "Rounds"), rows, left=3)


def _where(cell: Cell, *, alone: bool) -> str:
    return cell.column.title if alone else f"{cell.column.title}, {cell.column.model}"


def _written(cell: Cell) -> str:
    spec = cell.spec
    parts = {"server": spec.server, "robust": spec.robust}
    changed = {name: found for name, part in parts.items() if (found := part.model_dump(exclude_defaults=True))}
    return _choice({"name": spec.algorithm.name, **spec.algorithm.options, **changed})


def _choice(options: dict[str, Any]) -> str:
    """Formats ``dirichlet, alpha = 0.5`` without unset values."""
    named = dict(options)
    name = str(named.pop("name"))
    return ", ".join([name, *(f"{key} = {_value(value)}" for key, value in named.items() if value is not None)])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(part)}" for key, part in value.items() if part is not None) + "}"
    return str(value)


def _rounds(counts: Sequence[int]) -> str:
    if len(counts) > 1:
        return f"{', '.join(map(str, counts[:-1]))} or {counts[-1]} rounds"
    return "1 round" if counts == [1] else f"{counts[0]} rounds"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _machine(place: dict[str, Any]) -> str:
    if server := place.get("server"):
        return f"the server {server}"
    gpu = f", {place['gpu']}" if place.get("gpu") else ", no GPU"
    return f"{place['cpu']}, {place['cores']} cores, {size(place['memory_bytes'])}{gpu}, {place['system']}"
