"""Projection and reconstruction: the paper's published code compared with the families T, R, G and H.

The document holds ``machine`` and ``threads`` (torch's). Without ``bounds`` it holds ``grid``, one entry per
device, with ``copy``, ``cells`` and ``skipped``; a cell is an operation of a way at d, K and N:

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

from collections.abc import Mapping
from typing import Any, final

import torch

from ferret_bench import base
from ferret_bench._projection import bounds as bounded
from ferret_bench._projection import grid
from ferret_bench._projection.llama import SMALL
from ferret_bench.base import Asked, Document, Say, Table, shown
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


def _cells(found: Mapping[str, Any]) -> Table:
    title = f"{found['device']}: {len(found['cells'])} cells, {len(found['skipped'])} skipped"
    return Table(title, list(CELL.values()), [[shown(cell[name]) for name in CELL] for cell in found["cells"]])


QUICK_GRID = grid.Sizes(elements=(20_000,), K=(16,), contributions=(1, 10), turns=Turns(3, 3))
QUICK_BOUNDS = bounded.Sizes(t_elements=2**16, elements=2**18, K=2**10, few_K=2**6, many_K=2**14, memory_elements=2**18)
TRAINING_SHARE = 0.5
"""The share of ``max_seconds`` for training, which the projection's cost is compared with."""


@final
class Benchmark(base.Benchmark):
    """``ferret bench projection``"""

    def measure(self, say: Say, asked: Asked) -> Document:
        measured = (_bounds if asked.bounds else _grid)(say, asked.quick, asked.max_seconds)
        return {"threads": torch.get_num_threads(), **measured}

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        return [bound.table(document)] if "bounds" in document else [_cells(found) for found in document["grid"]]


def _bounds(say: Say, quick: bool, max_seconds: float) -> Document:
    sizes, shapes = (QUICK_BOUNDS, SMALL[:1]) if quick else (bounded.Sizes(), SMALL)
    return bounded.measure(sizes, shapes, TRAINING_SHARE * max_seconds, say)


def _grid(say: Say, quick: bool, max_seconds: float) -> Document:
    sizes = QUICK_GRID if quick else grid.Sizes()
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    share = max_seconds / len(devices)
    return {"grid": [grid.measure(sizes, torch.device(device), share, say) for device in devices]}
