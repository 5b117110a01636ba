"""Results of the runs: mean and standard deviation over the seeds of every row and column, and the paper's figures."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from ferret_bench.measure.statistics import Interval, interval, ratio_error
from ferret_bench.reproduce.reruns.grid import Cell, Column, Grid, rows_of, shortly
from ferret_bench.reproduce.reruns.quantity import EVAL_LOSS, Quantity, bytes_both, overall_seconds
from ferret_bench.reproduce.reruns.records import ExampleLoss, Record, RoundRecord, Store
from ferret_bench.reproduce.reruns.settings import Row, Settings, shipped
from ferret_bench.reproduce.reruns.studies import Study
from ferret_cli.files import Row as CsvRow
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec


class Spread(NamedTuple):
    """Mean and sample standard deviation; None for a deviation of fewer than two values."""

    mean: float
    std: float | None


class Point(NamedTuple):
    """One quantity after a round, over the seeds."""

    round: int
    spread: Spread
    interval: Interval | None


class Line(NamedTuple):
    """A row on a dataset and a model, as it ran here or as the paper prints it.

    ``seeds`` and ``failed`` count completed and failed runs, None for the paper's. ``values`` are by the name of the
    quantity, None if unknown.
    """

    source: Literal["here", "paper"]
    row: Row
    dataset: str
    model: str
    seeds: int | None
    failed: int | None
    values: Mapping[str, Spread | None]
    intervals: Mapping[str, Interval | None] = {}
    differences: Mapping[str, Interval | None] = {}
    """Differences to the study's reference, in percent of it, seed by seed."""
    base: Mapping[str, float | None] = {}
    """The base model's values in the runs of this row."""


TARGET_SHARE = 0.9
"""The target loss is where this share of the reference's gain is reached."""


class TimeToTarget(NamedTuple):
    """The rounds until a loss, and one participant's bytes both ways and the seconds of computation in them."""

    rounds: int
    bytes: float
    seconds: float


class Results(NamedTuple):
    """The grid with the runs that have ended, and the trials of the search before them."""

    grid: Grid
    ended: dict[str, Record]
    trials: Sequence[Record] = ()

    def runs(self, row: Row, column: Column) -> list[Record]:
        """Returns the completed runs of this row and column, by seed."""
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
        """Returns the spread over the completed runs that have measured it, or None without any."""
        return spread_of([value for run in self.runs(row, column) if (value := quantity.of(run)) is not None])

    def base(self, row: Row, column: Column, quantity: Quantity) -> float | None:
        """Returns the base model's value: the mean over the row's completed runs that measured it before round 1."""
        rounds = [done for done in _rounds(self.runs(row, column)) if done.number == 0]
        found = [quantity.over([value]) for done in rounds if (value := quantity.at(done)) is not None]
        return statistics.fmean(found) if found else None

    def interval(self, row: Row, column: Column, quantity: Quantity) -> Interval | None:
        found = interval([value for run in self.runs(row, column) if (value := quantity.of(run)) is not None])
        losses = [run.example_losses for run in self.runs(row, column) if run.example_losses]
        if found is None or not losses or quantity is not EVAL_LOSS:
            return found
        return found.widened(ratio_error(_summed(losses, "nll"), _summed(losses, "tokens")))

    def difference(self, row: Row, reference: Row, column: Column, quantity: Quantity) -> Interval | None:
        """Returns the row's excess over the reference over the seeds that both have completed, in percent of the
        reference, or in the quantity's unit if it is ``absolute``.

        The interval of the loss contains the error of the test examples, if both have it in some seed.

        None with fewer than two such seeds, or if a percentage would be one of 0.
        """
        ours, theirs = (
            {run.seed: value for run in self.runs(each, column) if (value := quantity.of(run)) is not None}
            for each in (row, reference)
        )
        pairs = [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]
        if quantity.absolute:
            return interval([our - their for our, their in pairs])
        if not all(their for _, their in pairs):
            return None
        found = interval([100 * (our / their - 1) for our, their in pairs])
        by_seed = [
            {run.seed: run.example_losses for run in self.runs(each, column) if run.example_losses}
            for each in (row, reference)
        ]
        seeds = by_seed[0].keys() & by_seed[1].keys()
        if found is None or not seeds or quantity is not EVAL_LOSS:
            return found
        return found.widened(100 * ratio_error(*(_summed([each[seed] for seed in seeds], "nll") for each in by_seed)))

    def times_to_target(self, row: Row, reference: Row, column: Column) -> list[TimeToTarget | None]:
        """Returns, by seed, what the row needed to gain ``TARGET_SHARE`` of the reference's gain in all its rounds;
        None where it did not.

        Only seeds that both have completed count, with a loss measured in every round of the row.
        """
        targets = {run.seed: loss for run in self.runs(reference, column) if (loss := _target_loss(run)) is not None}
        return [
            _time_to_target(run, targets[run.seed])
            for run in self.runs(row, column)
            if run.seed in targets and _has_every_loss(run)
        ]

    def curve(self, row: Row, column: Column, quantity: Quantity) -> list[Point]:
        """Returns the points by round, where all completed runs have measured it."""
        runs = self.runs(row, column)
        by_round: dict[int, list[float]] = {}
        for done in _rounds(runs):
            if (value := quantity.at(done)) is not None:
                by_round.setdefault(done.number, []).append(value)
        return [
            Point(number, found, interval(values))
            for number, values in sorted(by_round.items())
            if len(values) == len(runs) and (found := spread_of(values))
        ]


class Printed(NamedTuple):
    """The paper's figures of a study; ``values`` by quantity, dataset, model and row."""

    where: str
    says: Sequence[str]
    notes: Sequence[str]
    values: Mapping[str, Mapping[str, Mapping[str, Mapping[str, Spread]]]]

    def models(self, dataset: str) -> list[str]:
        """Returns the models with printed figures on this dataset, in the paper's order."""
        return list(dict.fromkeys(model for by in self.values.values() for model in by.get(dataset, {})))

    def value(self, quantity: str, dataset: str, model: str, row: Row) -> Spread | None:
        return self.values.get(quantity, {}).get(dataset, {}).get(model, {}).get(row.printed)


def collect(grid: Grid, store: Store) -> Results:
    """Returns the grid with its stored runs."""
    return Results(grid, {cell.key: run for cell in grid.cells if (run := store.last(cell.key))})


def printed(study: str) -> Printed:
    """Returns the part of ``printed.toml`` about this table or figure."""
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


def lines(study: Study, results: Results, paper: Printed) -> list[Line]:
    """Returns our means and deviations, one line per row and column, then the paper's."""
    grid = results.grid
    datasets = dict.fromkeys(column.dataset for column in grid.columns)
    places = [(row, column) for column in grid.columns for row in grid.rows if results.cells(row, column)]
    # The paper prints an algorithm once, even if several rows run it: the first of them represents it.
    printed_rows = reversed({row.printed: row for row in reversed(grid.rows)}.values())
    papers = [_printed(study, paper, row, place) for place, row in product(_models(paper, datasets), [*printed_rows])]
    ours = [_measured(study, results, row, column) for row, column in places]
    return ours + [line for line in papers if any(line.values.values())]


def csv_rows(found: Iterable[Line]) -> list[CsvRow]:
    """One row per line, with all digits."""
    return [
        {
            "source": line.source,
            **_place(line.row, line.dataset, line.model),
            "seeds": line.seeds,
            "failed": line.failed,
            **_columns(line.values),
            **_halves("interval", line.intervals),
            **_halves("difference", line.differences),
        }
        for line in found
    ]


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


def _measured(study: Study, results: Results, row: Row, column: Column) -> Line:
    values = {quantity.name: results.value(row, column, quantity) for quantity in study.quantities}
    seeds, failed = len(results.runs(row, column)), results.failed(row, column)
    line = Line("here", row, column.dataset, column.model, seeds, failed, values)
    reference = next((other for other in results.grid.rows if other.name == study.reference), None)
    if reference is None:
        return line
    scored = [quantity for quantity in study.quantities if quantity.better is not None]
    return line._replace(
        intervals={quantity.name: results.interval(row, column, quantity) for quantity in scored},
        differences={
            quantity.name: None if row == reference else results.difference(row, reference, column, quantity)
            for quantity in scored
        },
        base={quantity.name: results.base(row, column, quantity) for quantity in study.quantities},
    )


def _models(paper: Printed, datasets: Iterable[str]) -> list[tuple[str, str]]:
    return [(dataset, model) for dataset in datasets for model in paper.models(dataset)]


def _printed(study: Study, paper: Printed, row: Row, place: tuple[str, str]) -> Line:
    values = {quantity.name: paper.value(quantity.name, *place, row) for quantity in study.quantities}
    return Line("paper", row, *place, seeds=None, failed=None, values=values)


def _summed(runs: Sequence[Sequence[ExampleLoss]], name: str) -> list[float]:
    """Returns the sum of ``nll`` or ``tokens`` over the runs, for each example."""
    return [sum(getattr(loss, name) for loss in losses) for losses in zip(*runs, strict=True)]


def _has_every_loss(run: Record) -> bool:
    return all("eval_loss" in done.metrics for done in run.rounds)


def _target_loss(run: Record) -> float | None:
    """Returns the loss at ``TARGET_SHARE`` of the way from the base model's to the last round's."""
    losses = [done.metrics["eval_loss"] for done in run.rounds if "eval_loss" in done.metrics]
    return losses[0] + TARGET_SHARE * (losses[-1] - losses[0]) if losses else None


def _time_to_target(run: Record, target: float) -> TimeToTarget | None:
    for done in run.rounds:
        if done.number and done.metrics["eval_loss"] <= target:
            passed = run.rounds[1 : done.number + 1]
            moved, seconds = (sum(at(each) or 0 for each in passed) for at in (bytes_both, overall_seconds))
            return TimeToTarget(done.number, moved, seconds)
    return None


def _rounds(runs: Sequence[Record]) -> Iterator[RoundRecord]:
    return (done for run in runs for done in run.rounds)


def _spread(value: Any) -> Spread:
    return Spread(float(value[0]), float(value[1])) if isinstance(value, list) else Spread(float(value), None)


def _place(row: Row, dataset: str, model: str) -> CsvRow:
    return {"row": row.name, "label": row.label, "dataset": dataset, "model": model}


def _halves(kind: str, found: Mapping[str, Interval | None]) -> CsvRow:
    return {
        f"{name}_{kind}_{part}": None if value is None else getattr(value, part)
        for name, value in found.items()
        for part in ("mean", "half")
    }


def _columns(values: Mapping[str, Spread | None]) -> CsvRow:
    return {
        f"{name}_{part}": None if value is None else getattr(value, part)
        for name, value in values.items()
        for part in ("mean", "std")
    }


def recorded(study: Study, settings: Settings, store: Store) -> Results:
    """Returns the stored runs of the study's rows in its order, without trials.

    Raises ``request.invalid`` without any.

    Models come in the order in which they were run. Runs of other rows, from studies in the same folder, are left out.
    """
    rows = {row.name: row for row in shortly([row for row in rows_of(study, settings) if row.family in study.rows])}
    known = [run for runs in store.runs.values() for run in runs[-1:] if run.row in rows]
    kept = [run for run in known if not run.is_trial]
    if not kept:
        raise FerretError("request.invalid", f"{store.path} holds no run of this study: run it first")
    order = {name: place for place, name in enumerate(rows)}
    datasets = {name: place for place, name in enumerate(study.datasets)}
    models = list(dict.fromkeys(run.model for run in kept))
    kept.sort(
        key=lambda run: (run.seed, datasets.get(run.dataset, len(datasets)), models.index(run.model), order[run.row])
    )
    cells = [_recorded_cell(run, rows[run.row], settings) for run in kept]
    found = {cell.row.name for cell in cells}
    grid = Grid(
        [row for row in rows.values() if row.name in found],
        list(_recorded_columns(cells)),
        cells,
        [],
    )
    return Results(grid, {run.key: run for run in kept}, [run for run in known if run.is_trial])


def _recorded_cell(run: Record, row: Row, settings: Settings) -> Cell:
    column = Column(run.dataset, settings.datasets[run.dataset]["label"], run.model, run.spec["model"]["source"])
    return Cell(row, column, run.seed, ExperimentSpec.model_validate(run.spec), run.key)


def _recorded_columns(cells: Iterable[Cell]) -> Iterable[Column]:
    """Returns the columns by dataset, in order of first appearance."""
    columns = dict.fromkeys(cell.column for cell in cells)
    datasets = list(dict.fromkeys(column.dataset for column in columns))
    return sorted(columns, key=lambda column: datasets.index(column.dataset))
