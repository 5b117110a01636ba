"""Projection and reconstruction: the paper's published code compared with the families T and G.

The document holds ``machine``, ``threads`` (torch's), ``ratios`` and ``bounds``, each by the seven keys that
``_projection/bounds.py`` defines, and ``measured``, the times behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import torch

from ferret_bench import base
from ferret_bench._projection import bounds
from ferret_bench._projection.llama import SMALL
from ferret_bench.base import Asked, Document, Say, Table
from ferret_bench.measure import bound

QUICK = bounds.Sizes(t_elements=2**16, elements=2**18, K=2**10, few_K=2**6, many_K=2**14, memory_elements=2**18)
TRAINING_SHARE = 0.5
"""The share of ``max_seconds`` for training, which the projection's cost is compared with."""


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench projection``"""

    def measure(self, say: Say, asked: Asked) -> Document:
        sizes, shapes = (QUICK, SMALL[:1]) if asked.quick else (bounds.Sizes(), SMALL)
        measured = bounds.measure(sizes, shapes, TRAINING_SHARE * asked.max_seconds, say)
        return {"threads": torch.get_num_threads(), **measured}

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        return [bound.table(document)]
