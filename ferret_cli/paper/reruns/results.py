"""What the runs say: mean and standard deviation over the seeds of every row and column, and what the paper prints."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ferret_cli.paper.reruns.grid import Cell, Column, Grid
from ferret_cli.paper.reruns.quantity import Quantity
from ferret_cli.paper.reruns.record import Record, RoundRecord
from ferret_cli.paper.reruns.settings import Row, shipped
from ferret_cli.paper.reruns.store import Store
from ferret_cli.paper.reruns.study import Study
from ferret_cli.paper.table import Row as CsvRow


class Spread(NamedTuple):
    """Mean and sample standard deviation; None for a deviation of fewer than two values."""

    mean: float
    std: float | None


class Point(NamedTuple):
    """One quantity after a round, over the seeds."""

    round: int
    spread: Spread


class Results(NamedTuple):
    """The grid with the runs that have ended."""

    grid: Grid
    ended: dict[str, Record]

    def runs(self, row: Row, column: Column) -> list[Record]:
        """The completed runs of this place, by seed."""
        found = (self.ended.get(cell.key) for cell in self.cells(row, column))
        return [run for run in found if run and run.error is None]

    def failures(self) -> list[tuple[Cell, dict[str, Any]]]:
        ended = ((cell, self.ended.get(cell.key)) for cell in self.grid.cells)
        return [(cell, run.error) for cell, run in ended if run and run.error]

    def failed(self, row: Row, column: Column) -> int:
        return sum((cell.row, cell.column) == (row, column) for cell, _ in self.failures())

    def cells(self, row: Row, column: Column) -> list[Cell]:
        return [cell for cell in self.grid.cells if (cell.row, cell.column) == (row, column)]

    def value(self, row: Row, column: Column, quantity: Quantity) -> Spread | None:
        """Over the completed runs that have measured it; None if there is none."""
        return spread_of([value for run in self.runs(row, column) if (value := quantity.of(run)) is not None])

    def curve(self, row: Row, column: Column, quantity: Quantity) -> list[Point]:
        """By round, where all completed runs have measured it."""
        runs = self.runs(row, column)
        by_round: dict[int, list[float]] = {}
        for done in _rounds(runs):
            if (value := quantity.at(done)) is not None:
                by_round.setdefault(done.number, []).append(value)
        return [
            Point(number, found)
            for number, values in sorted(by_round.items())
            if len(values) == len(runs) and (found := spread_of(values))
        ]


class Printed(NamedTuple):
    """What the paper says of a study; ``values`` by quantity, dataset, model and row."""

    where: str
    says: Sequence[str]
    notes: Sequence[str]
    values: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Spread]]]]

    def models(self, dataset: str) -> list[str]:
        """The models for which the paper prints anything on this dataset, in its order."""
        return list(dict.fromkeys(model for by in self.values.values() for model in by.get(dataset, {})))

    def value(self, quantity: str, dataset: str, model: str, row: Row) -> Spread | None:
        return self.values.get(quantity, {}).get(dataset, {}).get(model, {}).get(row.printed)

    def has(self, quantity: str, dataset: str, model: str) -> bool:
        return model in self.values.get(quantity, {}).get(dataset, {})


def collect(grid: Grid, store: Store) -> Results:
    """The grid with what the store holds of it."""
    return Results(grid, {cell.key: run for cell in grid.cells if (run := store.last(cell.key))})


def printed(study: str) -> Printed:
    """The part of ``printed.toml`` about this table or figure."""
    entry = shipped("printed.toml")[study]
    values = {
        quantity: {
            dataset: {model: {row: _spread(value) for row, value in rows.items()} for model, rows in models.items()}
            for dataset, models in by.items()
        }
        for quantity, by in entry.items()
        if isinstance(by, dict)
    }
    return Printed(entry["where"], entry["says"], entry.get("notes", []), values)


def csv_rows(study: Study, results: Results, paper: Printed) -> list[CsvRow]:
    """Our means and deviations, one row per place, then the paper's."""
    grid = results.grid
    rows: list[CsvRow] = []
    for column in grid.columns:
        for row in grid.rows:
            if not results.cells(row, column):
                continue
            counts: CsvRow = {"seeds": len(results.runs(row, column)), "failed": results.failed(row, column)}
            values = {quantity.name: results.value(row, column, quantity) for quantity in study.quantities}
            rows.append({"source": "here", **_place(row, column.dataset, column.model), **counts, **_columns(values)})
    for dataset in dict.fromkeys(column.dataset for column in grid.columns):
        for model in paper.models(dataset):
            for row in reversed({row.printed: row for row in reversed(grid.rows)}.values()):
                values = {q.name: paper.value(q.name, dataset, model, row) for q in study.quantities}
                if any(values.values()):
                    counts = {"seeds": None, "failed": None}
                    rows.append({"source": "paper", **_place(row, dataset, model), **counts, **_columns(values)})
    return rows


def curve_rows(results: Results) -> list[CsvRow]:
    """Every metric of every round of every run that has ended."""
    runs = [(cell, run) for cell in results.grid.cells if (run := results.ended.get(cell.key))]
    names = sorted({name for _, run in runs for done in run.rounds for name in done.metrics})
    return [
        {
            **_place(cell.row, cell.column.dataset, cell.column.model),
            "seed": cell.seed,
            "round": done.number,
            "participants": done.participants,
            "accepted": done.accepted,
            "bytes_up": done.bytes_up,
            "bytes_down": done.bytes_down,
            **{name: done.metrics.get(name) for name in names},
        }
        for cell, run in runs
        for done in run.rounds
    ]


def spread_of(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    return Spread(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)


def _rounds(runs: Sequence[Record]) -> Iterator[RoundRecord]:
    return (done for run in runs for done in run.rounds)


def _spread(value: Any) -> Spread:
    return Spread(float(value[0]), float(value[1])) if isinstance(value, list) else Spread(float(value), None)


def _place(row: Row, dataset: str, model: str) -> CsvRow:
    return {"row": row.name, "label": row.label, "dataset": dataset, "model": model}


def _columns(values: Mapping[str, Spread | None]) -> CsvRow:
    return {
        f"{name}_{part}": None if value is None else getattr(value, part)
        for name, value in values.items()
        for part in ("mean", "std")
    }
