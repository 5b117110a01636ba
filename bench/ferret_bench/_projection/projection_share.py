"""The cost of projecting relative to the local update before it, for the largest LLaMA that trains here in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ferret_bench._base import Say
from ferret_bench._projection.implementations import Family
from ferret_bench._projection.llama import Shape, random_batches, random_llama, seconds_per_step
from ferret_bench.measure.clock import Turns, in_turns
from ferret_bench.measure.memory import short_of
from ferret_core.models.parameters import trainable, working_copy
from ferret_core.projection import quantize
from ferret_core.projection.allocation import allocate
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import norms, project
from ferret_core.training.config import LocalConfig

CPU = torch.device("cpu")
STEPS, SEQUENCES, TOKENS = 10, 4, 256
MEASURED_STEPS = 3
K = 65_536
BYTES_PER_ELEMENT = 24
"""Weights, gradients, Adam's two moments and the previous weights, in fp32, and one more."""
ACTIVATION_BYTES = 2 * 10**9
EFFICIENCY = 0.4
"""Ratio of training's floating-point operations per second to those in one large product of matrices, about."""


def projection_share(shapes: Sequence[Shape], max_seconds: float, say: Say) -> dict[str, Any]:
    """Returns ``value``: seconds of norms, projection (G, K = 65,536) and 1-bit quantisation over the local update's.

    The update is 10 steps of Adam on 4 sequences of 256 tokens each; 3 of them are timed after one that warms up, and
    scaled to 10.
    """
    shape = largest(shapes, max_seconds)
    say(f"training {shape.name}, {shape.elements:,} parameters, for {1 + MEASURED_STEPS} steps")
    model = random_llama(shape, CPU)
    config = LocalConfig(steps=1 + MEASURED_STEPS, batch_size=SEQUENCES, accumulation=1)
    with working_copy(model) as before:
        step = seconds_per_step(model, random_batches(shape, SEQUENCES, TOKENS), config)
        projection = _seconds_of_projection(before, trainable(model))
    return {
        "value": projection / (STEPS * step),
        "model": shape.name,
        "parameters": shape.elements,
        "K": K,
        "kernel": Family("G").kernel(CPU),
        "local_steps": STEPS,
        "steps_measured": MEASURED_STEPS,
        "seconds": {"local_update": STEPS * step, "projection": projection},
    }


def largest(shapes: Sequence[Shape], max_seconds: float) -> Shape:
    """Returns the last of ``shapes`` that fits into memory and trains its steps in ``max_seconds``, or the first."""
    rate = EFFICIENCY * _operations_per_second()

    def fits(shape: Shape) -> bool:
        needed = ACTIVATION_BYTES + shape.elements * BYTES_PER_ELEMENT
        operations = 6 * shape.elements * SEQUENCES * TOKENS * (1 + MEASURED_STEPS)
        return short_of(needed, CPU) is None and operations / rate <= max_seconds

    return ([shape for shape in shapes if fits(shape)] or [shapes[0]])[-1]


def _operations_per_second() -> float:
    size = 1024
    matrix = torch.randn(size, size)
    timings = in_turns({"product": lambda: matrix @ matrix}, CPU, Turns(seconds=0.5))
    return 2 * size**3 / timings.median("product")


def _seconds_of_projection(before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> float:
    blocks = blocks_of(after)

    def contribute() -> None:
        counts = allocate("norm", K, norms(before, after, blocks), [block.size for block in blocks])
        quantize.quantize(project(before, after, blocks, basis("G"), counts, 1).coordinates, "sign")

    return in_turns({"projection": contribute}, CPU, Turns(least=5)).median("projection")
