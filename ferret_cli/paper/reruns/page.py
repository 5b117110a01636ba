"""One page that needs no other file: our figures beside the paper's, and all that it takes to judge or repeat them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from ferret_cli.output import size
from ferret_cli.paper.reruns.grid import Cell
from ferret_cli.paper.reruns.results import Printed, Results
from ferret_cli.paper.reruns.sheet import Entry, Head, Line, Sheet
from ferret_cli.paper.reruns.study import Study
from ferret_core.protocol.spec import ExperimentSpec

PAPER = (
    "Shu et al., <i>Ferret: Federated Full-Parameter Tuning at Scale for Large Language Models</i>, ICML 2025, "
    "arXiv:2409.06277"
)


@dataclass(frozen=True)
class Picture:
    """A panel in both themes, as PNG."""

    title: str
    light: bytes
    dark: bytes


@dataclass(frozen=True)
class Page:
    study: Study
    paper: Printed
    results: Results
    sheets: Sequence[Sheet]
    pictures: Sequence[Picture]
    command: str
    written: str

    def html(self) -> str:
        css = (files(__package__ or "") / "page.css").read_text(encoding="utf-8")
        body = "\n".join(part for part in self._parts() if part)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self.study.title)} · Ferret</title>\n<style>\n{css}</style>\n</head>\n"
            f"<body>\n{body}\n</body>\n</html>\n"
        )

    def _parts(self) -> Iterable[str]:
        yield _header(self.study, self.paper)
        yield _alert(self.results)
        yield _pictures(self.pictures)
        yield from (_sheet(sheet) for sheet in self.sheets)
        yield _says(self.paper)
        yield _failures(self.results)
        yield _how(self.results, self.command)
        yield f"<footer><p>Written {escape(self.written)}. The paper: {PAPER}.</p></footer>"


def _header(study: Study, paper: Printed) -> str:
    return (
        f'<header><p class="where">Ferret · {escape(paper.where)}</p><h1>{escape(study.title)}</h1>'
        f"<p>{escape(study.lead)}</p></header>"
    )


def _alert(results: Results) -> str:
    """What is missing, before anything is read as complete."""
    waiting = len(results.grid.cells) - len(results.ended)
    said = [f"Not in this installation: {', '.join(results.grid.skipped)}."] if results.grid.skipped else []
    if waiting:
        said.append(f"{waiting} of {len(results.grid.cells)} runs have not ended yet.")
    if failed := len(results.failures()):
        said.append(f"{failed} of {len(results.grid.cells)} runs failed; their errors are below.")
    return f'<p class="alert">{escape(" ".join(said))}</p>' if said else ""


def _pictures(pictures: Sequence[Picture]) -> str:
    shown = "\n".join(
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{_uri(one.dark)}">'
        f'<img src="{_uri(one.light)}" alt="{escape(one.title)}"></picture></figure>'
        for one in pictures
    )
    return f'<div class="pictures">\n{shown}\n</div>' if shown else ""


def _uri(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _sheet(sheet: Sheet) -> str:
    firsts = _firsts(sheet.heads)
    labels = "".join(
        f'<th scope="col"{_class("first" if first else "")}>{escape(head.label)}</th>'
        for head, first in zip(sheet.heads, firsts, strict=True)
    )
    lines = "\n".join(_line(line, sheet.heads, firsts) for line in sheet.lines)
    title, more = escape(sheet.title), "more columns"
    return (
        f"{f'<h2>{title}</h2>' if title else ''}\n"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title or more}"><table>\n<thead>\n'
        f'<tr class="group"><th></th>{_groups(sheet.heads)}</tr>\n'
        f'<tr><th scope="col">Algorithm</th>{labels}</tr>\n</thead>\n<tbody>\n{lines}\n</tbody>\n</table></div>'
    )


def _firsts(heads: Sequence[Head]) -> list[bool]:
    """Where a group of columns begins."""
    before = [None, *((head.group, head.ours) for head in heads)]
    return [(head.group, head.ours) != last for head, last in zip(heads, before, strict=False)]


def _groups(heads: Sequence[Head]) -> str:
    spans = ((group, ours, len(list(found))) for (group, ours), found in groupby(heads, lambda h: (h.group, h.ours)))
    return "".join(
        f'<th scope="colgroup" class="first" colspan="{count}">{escape(group)}<small>{_whose(ours)}</small></th>'
        for group, ours, count in spans
    )


def _whose(ours: bool) -> str:
    return "here" if ours else "paper"


def _line(line: Line, heads: Sequence[Head], firsts: Sequence[bool]) -> str:
    entries = "".join(
        _entry(entry, head, first) for entry, head, first in zip(line.entries, heads, firsts, strict=True)
    )
    return f'<tr{_class("apart" if line.apart else "")}><th scope="row">{escape(line.label)}</th>{entries}</tr>'


def _entry(entry: Entry, head: Head, first: bool) -> str:
    std = f' <span class="std">± {escape(entry.std)}</span>' if entry.std else ""
    mean = f"<span{_class(entry.mark)}>{escape(entry.mean)}</span>"
    return f"<td{_class('first' if first else '', '' if head.ours else 'paper')}>{mean}{std}</td>"


def _class(*names: str) -> str:
    given = " ".join(name for name in names if name)
    return f' class="{given}"' if given else ""


def _says(paper: Printed) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in (*paper.says, *paper.notes))
    return f'<h2>The paper, and what differs</h2>\n<ul class="remarks">{notes}</ul>'


def _failures(results: Results) -> str:
    found = results.failures()
    if not found:
        return ""
    lines = [(cell.title, str(error.get("detail", ""))) for cell, error in found]
    return f"<h2>Runs that failed</h2>\n{_plain(('Run', 'Error'), lines, text=1)}"


def _how(results: Results, command: str) -> str:
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in _facts(results))
    return (
        f'<h2>How it was run</h2>\n<dl class="facts">{facts}</dl>\n'
        f"<h2>Run it again</h2>\n<pre>{escape(command)}</pre>\n"
        f"<details><summary>Options of every row</summary>{_options(results)}</details>\n"
        f"<details><summary>Every run</summary>{_runs(results)}</details>"
    )


def _facts(results: Results) -> Iterable[tuple[str, str]]:
    grid, runs = results.grid, list(results.ended.values())
    for column in grid.columns:
        specs = [cell.spec for cell in grid.cells if cell.column == column]
        rounds = sorted({spec.rounds for spec in specs})
        yield f"{column.title}, {column.model}", f"{_who(specs[0])}; {_rounds(rounds)}; {_scored(specs[0])}"
    yield "Seeds", f"1 to {seeds}" if (seeds := max(cell.seed for cell in grid.cells)) > 1 else "1"
    if runs:
        yield "Time", _duration(sum(run.seconds for run in runs)) + f" over {len(runs)} runs"
    for place in {json.dumps(run.machine, sort_keys=True): run.machine for run in runs}.values():
        yield "Machine", _machine(place)
        yield "Versions", ", ".join(f"{name} {number}" for name, number in place.get("versions", {}).items()) or "–"


def _who(spec: ExperimentSpec) -> str:
    split, who = _choice(spec.partition.model_dump()), spec.participants
    share = "all" if who.fraction == 1 else f"{who.fraction:.0%}"
    return f"{split} split over {who.simulated} clients, {share} of them in a round"


def _scored(spec: ExperimentSpec) -> str:
    scored = spec.evaluation
    answers = f", Rouge-L on {scored.generate} answers" if scored.generate else ""
    return f"loss on {scored.examples} held-out example{'s' if scored.examples > 1 else ''}{answers}"


def _options(results: Results) -> str:
    """What each row was run with on each dataset, every default filled in."""
    cells = {(cell.row.name, cell.column.dataset): cell for cell in reversed(results.grid.cells)}
    lines = [
        (cell.row.label, cell.column.title, str(cell.spec.rounds), _written(cell.spec.algorithm.options, cell))
        for cell in reversed(cells.values())
    ]
    return _plain(("Row", "Dataset", "Rounds", "Options"), lines, text=3)


def _written(options: dict[str, Any], cell: Cell) -> str:
    server = cell.spec.server.model_dump(exclude_defaults=True)
    return _choice({"name": cell.spec.algorithm.name, **options, **({"server": server} if server else {})})


def _runs(results: Results) -> str:
    lines = [
        (
            cell.title,
            "–" if run is None else "failed" if run.error else "completed",
            "–" if run is None else f"{run.seconds:.1f} s",
            "–" if run is None else run.via,
            "–" if run is None or run.digest is None else run.digest[:12],
        )
        for cell in results.grid.cells
        for run in [results.ended.get(cell.key)]
    ]
    return _plain(("Run", "State", "Time", "Through", "Digest"), lines)


def _plain(heads: Sequence[str], lines: Iterable[Sequence[str]], text: int | None = None) -> str:
    """A table of words; the column ``text`` may be long."""
    head = "".join(f'<th scope="col"{_style(place, text)}>{escape(name)}</th>' for place, name in enumerate(heads))
    body = "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(
            f"<td{_class('text' if place == text else '')}>{escape(cell)}</td>" for place, cell in enumerate(rest, 1)
        )
        + "</tr>"
        for first, *rest in lines
    )
    table = f'<table class="plain"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _style(place: int, text: int | None) -> str:
    return ' style="text-align:left"' if place == text else ""


def _choice(options: dict[str, Any]) -> str:
    """``dirichlet, alpha = 0.5``; what is not set is left out."""
    named = dict(options)
    name = str(named.pop("name"))
    return ", ".join([name, *(f"{key} = {_value(value)}" for key, value in named.items() if value is not None)])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(one)}" for key, one in value.items() if one is not None) + "}"
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
