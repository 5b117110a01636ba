"""Memory of one way to train, in a process of its own: ``python -m ferret_bench._training.footprint ARGUMENTS``.

Takes ``Arguments`` as JSON and prints the peak in bytes, as JSON. What one way leaves in the heap would be room for
the next.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from ferret_bench._projection.llama import TOY, Shape, random_batches, random_llama
from ferret_bench.measure.memory import extra_bytes
from ferret_core.models.parameters import working_copy
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train

STEPS = 2
"""An optimizer makes its state in the first step, and has it beside the gradients in the second."""
AS_IS: Mapping[str, str] = {}
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}
"""Tells the GNU C library to return every larger block when it is freed: it begins so, but soon keeps some."""


class Arguments(NamedTuple):
    """``options`` are those of ``LocalConfig``; every step trains on one sequence of ``tokens`` tokens."""

    shape: Shape
    options: Mapping[str, Any]
    tokens: int
    device: str
    threads: int

    @property
    def config(self) -> LocalConfig:
        return LocalConfig.model_validate({"steps": STEPS, "accumulation": 1, **self.options})

    @property
    def dtype(self) -> torch.dtype:
        """Of the global model."""
        return torch.bfloat16 if self.config.pure else torch.float32

    @property
    def weight_bytes(self) -> int:
        return self.dtype.itemsize * self.shape.elements


def in_a_fresh_process(arguments: Arguments, environment: Mapping[str, str]) -> int | None:
    """``peak_bytes`` where also these variables are set."""
    command = [sys.executable, "-m", __name__, json.dumps(arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **environment})
    return json.loads(done.stdout)


def peak_bytes(arguments: Arguments) -> int | None:
    """What the device that trains holds at most during one local update, its model counted; None if unknown."""
    device = torch.device(arguments.device)
    # The first step of a process imports and allocates what has nothing to do with the model.
    _update(arguments, TOY, random_llama(TOY, device, arguments.dtype))
    model = random_llama(arguments.shape, device, arguments.dtype)
    extra = extra_bytes(lambda: _update(arguments, arguments.shape, model), device)
    return None if extra is None else arguments.weight_bytes + extra


def _update(arguments: Arguments, shape: Shape, model: nn.Module) -> None:
    with working_copy(model, arguments.config.pure):
        train(model, random_batches(shape, 1, arguments.tokens), arguments.config)


if __name__ == "__main__":
    shape, *others = json.loads(sys.argv[1])
    given = Arguments(Shape(*shape), *others)
    torch.set_num_threads(given.threads)
    print(json.dumps(peak_bytes(given)))
