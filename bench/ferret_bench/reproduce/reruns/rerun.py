"""A table or figure from the first run to the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ferret_bench.reproduce.reruns import panels
from ferret_bench.reproduce.reruns.grid import Cell, Grid
from ferret_bench.reproduce.reruns.page import Page
from ferret_bench.reproduce.reruns.record import Record
from ferret_bench.reproduce.reruns.results import Results, csv_rows, curve_rows, lines, printed
from ferret_bench.reproduce.reruns.store import Store
from ferret_bench.reproduce.reruns.study import Study
from ferret_cli import plot_style
from ferret_cli.files import to_csv, write
from ferret_cli.output import say

REMARKS = "-remarks.md"
"""Suffix of the file with a page's remarks."""

Runner = Callable[[Sequence[Cell]], Iterator[tuple[Cell, Record]]]


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
