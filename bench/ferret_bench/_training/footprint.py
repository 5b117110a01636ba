"""Memory of one way to train, in a separate process: ``python -m ferret_bench._training.footprint ARGUMENTS``.

Takes ``Arguments`` as JSON and prints the peak in bytes, as JSON. In a shared process, one way's freed heap would be
room for the next.
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
"""An optimizer creates its state in the first step, and has it together with the gradients in the second."""
AS_IS: Mapping[str, str] = {}
GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": str(1 << 17)}
"""Makes the GNU C library return every larger block when it is freed: it begins so, but soon keeps some."""


class Arguments(NamedTuple):
    """``options`` are the ``LocalConfig``'s; every step trains on one sequence of ``tokens`` tokens."""

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
        """The dtype of the global model."""
        return torch.bfloat16 if self.config.pure else torch.float32

    @property
    def weight_bytes(self) -> int:
        return self.dtype.itemsize * self.shape.elements


def in_a_fresh_process(arguments: Arguments, environment: Mapping[str, str]) -> int | None:
    """Returns ``peak_bytes`` with these variables set."""
    command = [sys.executable, "-m", __name__, json.dumps(arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **environment})
    return json.loads(done.stdout)


def peak_bytes(arguments: Arguments) -> int | None:
    """Returns the peak memory of the training device during one local update, with the model; None if unknown."""
    device = torch.device(arguments.device)
    # The first step of a process imports and allocates things unrelated to the model.
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
