"""``ferret dev paper table``, ``figure``, ``tune`` and ``page``, from their options to their files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import typer

from ferret_bench.reproduce.reruns import panels, places, settings, studies, tuning
from ferret_bench.reproduce.reruns.grid import Asked, Cell, Grid, grid
from ferret_bench.reproduce.reruns.page import Page
from ferret_bench.reproduce.reruns.places import Runner
from ferret_bench.reproduce.reruns.records import Record, Store
from ferret_bench.reproduce.reruns.results import Results, collect, csv_rows, curve_rows, lines, printed, recorded
from ferret_bench.reproduce.reruns.shapes import model_of
from ferret_bench.reproduce.reruns.studies import Kind, Study
from ferret_cli import plot_style
from ferret_cli.files import to_csv, writable, write
from ferret_cli.output import emit, say
from ferret_core.protocol.errors import Exit, FerretError
from ferret_sdk.http.transport import is_loopback

HOME = ".ferret"
CHOSEN = "chosen.toml"


class Where(NamedTuple):
    """The place of the runs: this process, the service at ``url``, or a service that the command starts."""

    simulate: bool
    url: str | None
    token: str | None
    together: int

    @property
    def remote(self) -> bool:
        return self.url is not None and not is_loopback(self.url)

    def open(self, home: Path, store: Store) -> AbstractContextManager[Runner]:
        if self.simulate:
            return places.this_process(home)
        if self.url is not None:
            return places.service_at(self.url, self.token, home, store, self.together)
        return places.own_service(home, store, self.together)


class Over(NamedTuple):
    """Overrides of the shipped settings: a file, and ``--set`` values over that."""

    file: Path | None
    assignments: Sequence[str]


def rerun(
    kind: Kind,
    name: str,
    out: Path,
    asked: Asked,
    where: Where,
    over: Over,
    *,
    shapes: Sequence[str],
    retry: bool,
    json: bool,
) -> None:
    """Runs what has not run yet and writes the files. After an interrupt it writes the available results.

    Ends the command with exit code 1 if a run failed.
    """
    study = studies.study(kind, name)
    known = settings.read(over.file, over.assignments, study, absolute_paths=not where.remote)
    folder = writable(out, "--out")
    asked = _with_models(asked, shapes, folder)
    cells = grid(study, known, asked)
    for lacking in cells.skipped:
        say(f"skipped: there is no {lacking} in this installation")
    store = Store(folder)
    waiting = open_cells(cells, store, retry=retry)
    try:
        if waiting:
            with where.open((folder / HOME).resolve(), store) as run:
                finish(waiting, len(cells.cells), store, run)
    except BaseException:
        # Read again: the interrupt may have come when a run was on disk but not yet known here.
        if (so_far := collect(cells, Store(folder))).ended:
            write_all(name, study, so_far, folder, _command())
        raise
    results = collect(cells, store)
    written = write_all(name, study, results, folder, _command())
    if json:
        emit(_document(name, study, results, written))
    else:
        print(written["page"])
    if failures := results.failures():
        say(f"{len(failures)} of {len(cells.cells)} runs failed; --retry runs them again")
        raise typer.Exit(Exit.FAILURE)


def tune(
    kind: Kind, name: str, out: Path, asked: Asked, over: Over, *, seeds: int, shapes: Sequence[str], json: bool
) -> None:
    """Runs every candidate for every row on the validation split, in this process, and writes the chosen settings."""
    if len(asked.models) + len(shapes) > 1:
        models = [*asked.models, *shapes]
        raise FerretError.of_field("request.invalid", "--model", models, "their losses do not compare: give one")
    study = studies.study(kind, name)
    folder = writable(out, "--out")
    known = settings.read(over.file, over.assignments, study, absolute_paths=True)
    searched = tuning.search(study, known, _with_models(asked, shapes, folder), seeds)
    store = Store(folder)
    waiting = [cell for cell in searched.cells if store.last(cell.key) is None]
    with places.this_process((folder / HOME).resolve()) as run:
        finish(waiting, len(searched.cells), store, run)
    found = tuning.trials(study, searched, store)
    file = write(folder / CHOSEN, tuning.settings_file(tuning.chosen(found)).encode())
    if json:
        emit({"chosen": file, "trials": [_trial(trial) for trial in found]})
    else:
        print(file)


def rewrite(name: str, folder: Path, over: Over, *, json: bool) -> None:
    """Rewrites the page of the runs recorded in ``folder``."""
    study = studies.study(studies.kind_of(name), name)
    known = settings.read(over.file, over.assignments, study, absolute_paths=False)
    results = recorded(study, known, Store(folder))
    written = write_all(
        name, study, results, folder, f"ferret dev paper page {name} --out {folder.name}", "from runs.jsonl"
    )
    if json:
        emit(_document(name, study, results, written))
    else:
        print(written["page"])


def _trial(trial: tuning.Trial) -> dict[str, Any]:
    return {"row": trial.row.name, "dataset": trial.column.dataset, "candidate": trial.candidate, "loss": trial.loss}


def _with_models(asked: Asked, shapes: Sequence[str], folder: Path) -> Asked:
    models = (*asked.models, *(str(model_of(shape, folder)) for shape in shapes))
    if not models:
        raise FerretError("request.invalid", "no model given: name its folder or hub name with --model, or a --shape")
    return replace(asked, models=models)


def _document(name: str, study: Study, results: Results, written: dict[str, Path]) -> dict[str, Any]:
    return {
        "name": name,
        "files": written,
        "runs": len(results.ended),
        "skipped": results.grid.skipped,
        "failed": [{"run": cell.title, "error": error} for cell, error in results.failures()],
        "rows": csv_rows(lines(study, results, printed(name))),
    }


def _command() -> str:
    """Returns the command line without the token."""
    words = ["ferret", *sys.argv[1:]]
    shown = ["…" if before == "--token" else word for before, word in zip(["", *words], words, strict=False)]
    return shlex.join(word.split("#token=")[0] for word in shown if not word.startswith("--token="))


REMARKS = "-remarks.md"
"""Suffix of the file with a page's remarks."""


def open_cells(grid: Grid, store: Store, *, retry: bool) -> list[Cell]:
    """Returns the cells that have not ended, and with ``retry`` the failed ones."""
    waiting = [cell for cell in grid.cells if _open(store.last(cell.key), retry=retry)]
    if done := len(grid.cells) - len(waiting):
        say(f"{done} of {len(grid.cells)} runs have ended already: {store.path}")
    return waiting


def finish(waiting: Sequence[Cell], total: int, store: Store, run: Runner) -> None:
    """Runs the cells, the last ones of ``total``. Each is stored as it ends."""
    for number, (cell, record) in enumerate(run(waiting), total - len(waiting) + 1):
        store.add(record)
        say(f"{number} of {total}: {cell.title} {_ending(record)}")


def write_all(
    name: str, study: Study, results: Results, folder: Path, command: str, written: str | None = None
) -> dict[str, Path]:
    """Writes the results so far. Returns the files by kind: ``csv``, ``rounds``, ``page``, and ``png`` of a figure.

    ``written`` is the page's date (default: now). The content of the folder's ``NAME-remarks.md`` becomes part of the
    page.
    """
    paper = printed(name)
    found = lines(study, results, paper)
    files = {
        "csv": write(folder / f"{name}.csv", to_csv(csv_rows(found)).encode()),
        "rounds": write(folder / f"{name}-rounds.csv", to_csv(curve_rows(results)).encode()),
    }
    with plot_style.applied():
        if figure := panels.draw(study, results):
            files["png"] = write(folder / f"{name}.png", plot_style.png(figure))
    picture = files["png"].name if "png" in files else None
    date = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC" if written is None else written
    remarks = folder / f"{name}{REMARKS}"
    said = remarks.read_text(encoding="utf-8").strip() if remarks.exists() else ""
    page = Page(study, paper, results, found, picture, command, date, said)
    return files | {"page": write(folder / f"{name}.md", page.markdown().encode())}


def _open(last: Record | None, *, retry: bool) -> bool:
    return last is None or (retry and last.error is not None)


def _ending(record: Record) -> str:
    if record.error is not None:
        return f"failed: {record.error.get('detail')}"
    return f"took {record.seconds:.1f} s"
