"""The document of ``ferret_bench/projection.py`` as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ferret_bench._base import Table, shown
from ferret_bench.measure import bound

CELL = {
    "way": "way",
    "kernel": "kernel",
    "operation": "operation",
    "d": "d",
    "K": "K",
    "N": "N",
    "ns_per_element": "ns/element",
    "ns_per_entry": "ns/entry",
    "gb_per_s": "GB/s",
    "times_copy": "× copy",
    "speedup": "speedup",
    "extra_memory_mb": "extra MB",
}
"""A cell's fields, and what heads their columns."""
COSTS = ("method", "local_update_s", "aggregation_s", "overall_s")


def tables(document: Mapping[str, Any]) -> list[Table]:
    measured = [bound.table(document)] if "bounds" in document else [_cells(grid) for grid in document["grid"]]
    return measured + _gpu(document["gpu"])


def _cells(grid: Mapping[str, Any]) -> Table:
    title = f"{grid['device']}: {len(grid['cells'])} cells, {len(grid['skipped'])} skipped"
    return Table(title, list(CELL.values()), [_row(cell, CELL) for cell in grid["cells"]])


def _gpu(gpu: Mapping[str, Any]) -> list[Table]:
    if gpu["device"] is None:
        return [Table(f"GPU: {gpu['reason']}", [], [])]
    return [_costs(model, gpu["device"]) for model in gpu["models"]]


def _costs(model: Mapping[str, Any], device: str) -> Table:
    if "skipped" in model:
        return Table(f"{model['model']}: {model['skipped']}", [], [])
    return Table(f"{model['model']} on {device}", COSTS, [_row(method, COSTS) for method in model["methods"]])


def _row(values: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [shown(values[name]) for name in names]
