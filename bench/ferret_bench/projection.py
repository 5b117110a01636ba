"""Projection and reconstruction: the paper's published code compared with the families T, R, G and H.

The document holds ``machine``, ``threads`` (torch's) and ``gpu``. Without ``bounds`` it holds ``grid``, one
entry per device, with ``copy``, ``cells`` and ``skipped``; a cell is an operation of a way at d, K and N:

    seconds             median over the repetitions, after a warm-up
    ns_per_element      seconds / d
    ns_per_entry        seconds / (d·K·N): over all entries of the N matrices V, zeros counted, the same for every way
    bytes_per_element   what must move between processor and memory; gb_per_s: at that rate
    extra_memory_mb     peak during one call in 10⁶ bytes, less arguments and result
    times_copy          over the time of ``copy_`` of one vector of d elements, which takes turns with it
    speedup             the naive way's time over this one's

With ``bounds`` it holds ``ratios`` and ``bounds``, each by the seven keys that ``_projection/bounds.py`` defines,
and ``measured``, the times behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, final

import torch

from ferret_bench import _base
from ferret_bench._base import Asked, Document, Say, Table, shown
from ferret_bench._projection import bounds as bounded
from ferret_bench._projection import grid
from ferret_bench._projection.costs import costs
from ferret_bench._projection.llama import SEVEN_BILLION, SMALL, THREE_BILLION
from ferret_bench.measure import bound
from ferret_bench.measure.clock import Turns

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


def _cells(found: Mapping[str, Any]) -> Table:
    title = f"{found['device']}: {len(found['cells'])} cells, {len(found['skipped'])} skipped"
    return Table(title, list(CELL.values()), [_row(cell, CELL) for cell in found["cells"]])


def _gpu_tables(gpu: Mapping[str, Any]) -> list[Table]:
    if gpu["device"] is None:
        return [Table(f"GPU: {gpu['reason']}", [], [])]
    return [_costs(model, gpu["device"]) for model in gpu["models"]]


def _costs(model: Mapping[str, Any], device: str) -> Table:
    if "skipped" in model:
        return Table(f"{model['model']}: {model['skipped']}", [], [])
    return Table(f"{model['model']} on {device}", COSTS, [_row(method, COSTS) for method in model["methods"]])


def _row(values: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [shown(values[name]) for name in names]


QUICK_GRID = grid.Sizes(elements=(20_000,), K=(16,), contributions=(1, 10), turns=Turns(3, 3))
QUICK_BOUNDS = bounded.Sizes(t_elements=2**16, elements=2**18, K=2**10, few_K=2**6, many_K=2**14, memory_elements=2**18)
TRAINING_SHARE = 0.5
"""The share of ``max_seconds`` for training, which the projection's cost is compared with."""


@final
class Benchmark(_base.Benchmark):
    """``ferret bench projection``"""

    def measure(self, say: Say, asked: Asked) -> Document:
        measured = (_bounds if asked.bounds else _grid)(say, asked.quick, asked.max_seconds)
        return {"threads": torch.get_num_threads(), **measured, "gpu": _gpu(say, asked.quick)}

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        measured = [bound.table(document)] if "bounds" in document else [_cells(found) for found in document["grid"]]
        return measured + _gpu_tables(document["gpu"])


def _bounds(say: Say, quick: bool, max_seconds: float) -> Document:
    sizes, shapes = (QUICK_BOUNDS, SMALL[:1]) if quick else (bounded.Sizes(), SMALL)
    return bounded.measure(sizes, shapes, TRAINING_SHARE * max_seconds, say)


def _grid(say: Say, quick: bool, max_seconds: float) -> Document:
    sizes = QUICK_GRID if quick else grid.Sizes()
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    share = max_seconds / len(devices)
    return {"grid": [grid.measure(sizes, torch.device(device), share, say) for device in devices]}


def _gpu(say: Say, quick: bool) -> dict[str, Any]:
    """Measures the paper's tables of cost on a GPU, if there is one."""
    if not torch.cuda.is_available():
        return {"device": None, "reason": "no CUDA device"}
    device = torch.device("cuda")
    shapes = SMALL[:1] if quick else (THREE_BILLION, SEVEN_BILLION)
    models = [costs(shape, device, torch.bfloat16, say) for shape in shapes]
    return {"device": torch.cuda.get_device_name(device), "models": models}
