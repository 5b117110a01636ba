"""The cost of projecting relative to a copy of the model, and of a round with each method: one run on one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import final

import torch

from ferret_bench._base import Table
from ferret_bench._projection.costs import costs
from ferret_bench._projection.llama import SEVEN_BILLION, THREE_BILLION, TOY, Shape
from ferret_bench.gpu.part import Done, Found, Setup, Step
from ferret_bench.measure.bound import HOLDS
from ferret_bench.measure.clock import Turns
from ferret_cli.output import say

METHODS = ("method", "local_update_s", "aggregation_s", "overall_s")
QUICK = Turns(2, 2)


@final
class Part:
    title = "Projection and methods"
    lead = (
        "Random weights, bf16. Every piece of work is measured in the same run; a method's cost is how often it does "
        "each, as the paper's appendix counts (tables 4, 5 and 10)."
    )
    seconds = 420.0

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        shapes = (TOY,) if setup.miniature else (THREE_BILLION, SEVEN_BILLION)
        return {shape.name: partial(_costs, shape) for shape in shapes}

    def tables(self, done: Done) -> Sequence[Table]:
        measured = {name: found for name, found in done.items() if "skipped" not in found}
        bounds = [
            [name, key, bound["value"], bound["bound"], HOLDS[bound["holds"]]]
            for name, found in measured.items()
            for key, bound in found["bounds"].items()
        ]
        methods = [
            [name, *(row[column] for column in METHODS)] for name, found in measured.items() for row in found["methods"]
        ]
        skipped = [[name, found["skipped"]] for name, found in done.items() if "skipped" in found]
        tables = [
            Table("Bounds:", ["model", "measured", "value", "bound", "holds"], bounds),
            Table("Seconds of a round:", ["model", "method", "local update", "aggregation", "overall"], methods),
        ]
        return [*tables, *([Table("Skipped:", ["model", "why"], skipped)] if skipped else [])]


def _costs(shape: Shape, setup: Setup) -> Found:
    return costs(shape, setup.device, torch.bfloat16, say, QUICK if setup.miniature else None)
