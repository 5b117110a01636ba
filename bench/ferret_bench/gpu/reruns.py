"""A row of a table or figure of the paper, run once in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ferret_bench.base import Table
from ferret_bench.gpu.part import Done, Found
from ferret_bench.reproduce.reruns import grid, settings
from ferret_bench.reproduce.reruns.in_process import simulated
from ferret_bench.reproduce.reruns.quantity import Quantity
from ferret_bench.reproduce.reruns.studies import Study
from ferret_core.protocol.errors import FerretError


class Asked(NamedTuple):
    """A model and a dataset in folders, a row by its name in ``rows.toml``, and ``--set`` values."""

    model: Path
    data: Path
    dataset: str
    row: str
    given: Sequence[str] = ()


def rerun(study: Study, asked: Asked, quantities: Sequence[Quantity]) -> Found:
    """Returns ``values``, formatted, by the quantities' labels, for each run of the row by its label."""
    known = settings.read(None, asked.given, study, absolute_paths=True)
    cells = grid.grid(
        study,
        known,
        grid.Asked(models=(str(asked.model),), data=asked.data, rows=(asked.row,), datasets=(asked.dataset,), seeds=1),
    )
    runs: dict[str, Found] = {}
    for cell, record in simulated(cells.cells):
        if record.error is not None:
            raise FerretError(record.error["code"], f"{cell.row.label}: {record.error['detail']}")
        found = {quantity.label: quantity.of(record) for quantity in quantities}
        shown = {quantity.label: quantity.show for quantity in quantities}
        runs[cell.row.label] = {name: None if value is None else shown[name](value) for name, value in found.items()}
    return {"runs": runs}


def table(title: str, done: Done) -> Table:
    """Returns the results of ``rerun`` in each step, one line per run."""
    runs = [(step, label, values) for step, found in done.items() for label, values in found["runs"].items()]
    names = list(dict.fromkeys(name for _, _, values in runs for name in values))
    rows = [[step.partition(",")[0], label, *(values.get(name) for name in names)] for step, label, values in runs]
    return Table(title, ["model", "method", *names], rows)
