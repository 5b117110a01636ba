"""The same search for every row: each candidate of its kind on the validation split, with seeds apart from the test's.

A row's best settings on a dataset become a settings file, with which the study itself is then run. No run of the search
sees a test example, and no row gets more candidates than another. A row that ``rows.toml`` ties to one optimizer gets
only that optimizer's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

import tomli_w

from ferret_bench.reproduce.reruns.grid import ONLY_THE_LAST, Asked, Cell, Column, Grid, grid
from ferret_bench.reproduce.reruns.records import FIRST_TRIAL_SEED, Store
from ferret_bench.reproduce.reruns.settings import Row, Settings, layered, shipped
from ferret_bench.reproduce.reruns.studies import Study
from ferret_bench.reproduce.reruns.tables import validation_loss
from ferret_core.catalog import ResolvedExperiment
from ferret_core.protocol.spec_file import Tree

ON_VALIDATION: Tree = {"evaluation": {"split": "validation", "generate_examples": 0, "every": ONLY_THE_LAST}}


class Trial(NamedTuple):
    """A candidate for a row on a dataset: its cells, and its mean validation loss, infinite if it failed."""

    row: Row
    column: Column
    number: int
    candidate: Tree
    loss: float


class Search(NamedTuple):
    """All cells of a search. ``grids`` has the same order as the candidates in ``candidates.toml``."""

    grids: Sequence[Grid]

    @property
    def cells(self) -> list[Cell]:
        return [cell for found in self.grids for cell in found.cells]


def search(study: Study, settings: Settings, asked: Asked, seeds: int) -> Search:
    """Every candidate for every row of the study, ``seeds`` times each.

    Raises as :func:`ferret_bench.reproduce.reruns.grid.grid`.
    """
    plain = grid(study, settings, replace(asked, seeds=1))
    kinds = {cell.row.name: kind_of(cell) for cell in plain.cells}
    counts = {len(tried) for tried in candidates(study).values()}
    (count,) = counts  # a kind with more candidates than another would have better chances
    return Search([_tried(study, settings, asked, kinds, number, seeds) for number in range(count)])


def kind_of(cell: Cell) -> str:
    """Returns the kind of candidates for this cell's algorithm."""
    local = ResolvedExperiment.of(cell.spec).traits.first_order
    return "zeroth_order" if local is None else "first_order"


def candidates(study: Study) -> Mapping[str, Sequence[Tree]]:
    return shipped(study.candidates)


def trials(study: Study, searched: Search, store: Store) -> list[Trial]:
    """Returns the results of the candidates that have ended."""
    found: list[Trial] = []
    for number, part in enumerate(searched.grids):
        by_place: dict[tuple[str, Column], list[Cell]] = {}
        for cell in part.cells:
            by_place.setdefault((cell.row.name, cell.column), []).append(cell)
        for cells in by_place.values():
            runs = [run for cell in cells if (run := store.last(cell.key))]
            if len(runs) == len(cells):
                candidate = candidates(study)[kind_of(cells[0])][number]
                mean = fmean(map(validation_loss, runs))
                found.append(Trial(cells[0].row, cells[0].column, number, candidate, mean))
    return found


def chosen(found: Iterable[Trial]) -> list[Trial]:
    """Returns each row's best on each dataset, in order of appearance; the first of equals, none that failed."""
    best: dict[tuple[str, str], Trial] = {}
    for trial in found:
        if math.isinf(trial.loss):
            continue
        place = trial.row.name, trial.column.dataset
        if place not in best or trial.loss < best[place].loss:
            best[place] = trial
    return list(best.values())


def settings_file(best: Iterable[Trial]) -> str:
    """Returns the TOML with each row's chosen settings on each dataset, for ``--settings``."""
    found: dict[str, Any] = {}
    for trial in best:
        found.setdefault(trial.row.name, {})[trial.column.dataset] = {"algorithm": {"local": trial.candidate}}
    head = "# Chosen on the validation split by `ferret dev paper tune`; its candidates are what was tried.\n"
    return f"{head}\n{tomli_w.dumps(found)}"


def _tried(study: Study, settings: Settings, asked: Asked, kinds: Mapping[str, str], number: int, seeds: int) -> Grid:
    over: dict[str, Any] = {
        row: layered([settings.over.get(row, {}), {"algorithm": {"local": dict(candidates(study)[kind][number])}}])
        for row, kind in kinds.items()
    }
    common = layered([settings.over.get("", {}), ON_VALIDATION])
    tried = Settings(settings.rows, settings.datasets, {**settings.over, **over, "": common})
    found = grid(replace(study, forgetting=False), tried, replace(asked, seeds=seeds, first_seed=FIRST_TRIAL_SEED))
    return found._replace(cells=[cell for cell in found.cells if _is_for(cell, settings)])


def _is_for(cell: Cell, settings: Settings) -> bool:
    """Returns True if the row takes this candidate: any, unless ``rows.toml`` sets the optimizer to tune with."""
    wanted = settings.rows[cell.row.family].get("tuned_with")
    return wanted is None or cell.spec.algorithm.options["local"]["optimizer"] == wanted
