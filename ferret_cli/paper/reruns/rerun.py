"""A table or figure from the first run to the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ferret_cli.output import say
from ferret_cli.paper import look
from ferret_cli.paper.files import write
from ferret_cli.paper.reruns import drawn_table, panels
from ferret_cli.paper.reruns.grid import Cell, Grid
from ferret_cli.paper.reruns.page import Page, Picture
from ferret_cli.paper.reruns.record import Record
from ferret_cli.paper.reruns.results import Results, csv_rows, curve_rows, printed
from ferret_cli.paper.reruns.sheet import sheets
from ferret_cli.paper.reruns.store import Store
from ferret_cli.paper.reruns.study import Study
from ferret_cli.paper.reruns.theme import DARK, LIGHT, Theme
from ferret_cli.paper.table import to_csv

Runner = Callable[[Sequence[Cell]], Iterator[tuple[Cell, Record]]]
FINE, SHARP = 150, 200
"""Dots per inch of the picture of all, and of the page's own, which a plain screen shows at half their size."""


class Written(NamedTuple):
    """The files of a study."""

    csv: Path
    rounds: Path
    png: Path
    html: Path


def open_cells(grid: Grid, store: Store, *, retry: bool) -> list[Cell]:
    """The cells that have not ended yet, and with ``retry`` those that failed."""
    waiting = [cell for cell in grid.cells if _open(store.last(cell.key), retry=retry)]
    if done := len(grid.cells) - len(waiting):
        say(f"{done} of {len(grid.cells)} runs are there already: {store.path}")
    return waiting


def finish(waiting: Sequence[Cell], total: int, store: Store, run: Runner) -> None:
    """Runs the cells, the last ones of ``total``; each is kept as it ends."""
    for number, (cell, record) in enumerate(run(waiting), total - len(waiting) + 1):
        store.add(record)
        say(f"{number} of {total}: {cell.title} {_ending(record)}")


def write_all(name: str, study: Study, results: Results, folder: Path, command: str) -> Written:
    """The study's CSV, picture and page, from what has ended so far."""
    paper = printed(name)
    csv = write(folder / f"{name}.csv", to_csv(csv_rows(study, results, paper)).encode())
    rounds = write(folder / f"{name}-rounds.csv", to_csv(curve_rows(results)).encode())
    shown = sheets(study, results, paper)
    drawings = panels.drawings(study, results)
    with LIGHT.applied():
        whole = (
            panels.together(study.title, results, drawings, LIGHT)
            if drawings
            else drawn_table.picture(study.title, shown, LIGHT)
        )
        whole.set_dpi(FINE)
        png = write(folder / f"{name}.png", look.png(whole))
    pictures = [Picture(one.title, *(_sharp(results, one, theme) for theme in (LIGHT, DARK))) for one in drawings]
    written = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    page = Page(study, paper, results, shown, pictures, command, written)
    html = write(folder / f"{name}.html", page.html().encode())
    return Written(csv, rounds, png, html)


def _sharp(results: Results, drawing: panels.Drawing, theme: Theme) -> bytes:
    with theme.applied():
        figure = panels.single(results, drawing, theme)
        figure.set_dpi(SHARP)
        return look.png(figure)


def _open(last: Record | None, *, retry: bool) -> bool:
    return last is None or (retry and last.error is not None)


def _ending(record: Record) -> str:
    if record.error is not None:
        return f"failed: {record.error.get('detail')}"
    return f"took {record.seconds:.1f} s"
