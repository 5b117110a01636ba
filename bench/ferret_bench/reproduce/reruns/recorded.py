"""A study's results from its recorded runs alone: without models and data, nothing is run."""

from __future__ import annotations

from collections.abc import Iterable

from ferret_bench.reproduce.reruns.grid import Cell, Column, Grid, rows_of, shortly
from ferret_bench.reproduce.reruns.record import Record
from ferret_bench.reproduce.reruns.results import Results
from ferret_bench.reproduce.reruns.settings import Row, Settings
from ferret_bench.reproduce.reruns.store import Store
from ferret_bench.reproduce.reruns.study import Study
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec


def results(study: Study, settings: Settings, store: Store) -> Results:
    """Returns the stored runs of the study's rows on the test split, in its order. Raises ``request.invalid`` without
    any.

    Models come in the order in which they were run. Runs of other rows, from studies in the same folder, are left out.
    """
    rows = {row.name: row for row in shortly([row for row in rows_of(study, settings) if row.family in study.rows])}
    known = [run for runs in store.runs.values() for run in runs[-1:] if run.row in rows]
    kept = [run for run in known if not run.on_validation]
    if not kept:
        raise FerretError("request.invalid", f"{store.path} holds no run of this study: run it first")
    order = {name: place for place, name in enumerate(rows)}
    datasets = {name: place for place, name in enumerate(study.datasets)}
    models = list(dict.fromkeys(run.model for run in kept))
    kept.sort(
        key=lambda run: (run.seed, datasets.get(run.dataset, len(datasets)), models.index(run.model), order[run.row])
    )
    cells = [_cell(run, rows[run.row], settings) for run in kept]
    found = {cell.row.name for cell in cells}
    grid = Grid(
        [row for row in rows.values() if row.name in found],
        list(_columns(cells)),
        cells,
        [],
    )
    return Results(grid, {run.key: run for run in kept}, [run for run in known if run.on_validation])


def _cell(run: Record, row: Row, settings: Settings) -> Cell:
    column = Column(run.dataset, settings.datasets[run.dataset]["label"], run.model, run.spec["model"]["source"])
    return Cell(row, column, run.seed, ExperimentSpec.model_validate(run.spec), run.key)


def _columns(cells: Iterable[Cell]) -> Iterable[Column]:
    """Returns the columns by dataset, in order of first appearance."""
    columns = dict.fromkeys(cell.column for cell in cells)
    datasets = list(dict.fromkeys(column.dataset for column in columns))
    return sorted(columns, key=lambda column: datasets.index(column.dataset))
