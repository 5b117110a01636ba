"""``python -m ferret_core.replica.mapped.worker_process``: moves its range of a mapped model at the first process's
request."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ferret_core import catalog
from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.safetensors_map import arrays, tensors
from ferret_core.projection.apply import moved_to
from ferret_core.projection.blocks import HeldRange
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array, decode
from ferret_core.replica.mapped.model_files import Writer
from ferret_core.replica.mapped.process_pool import STATE, read, write
from ferret_core.server.optimizer import ServerOptimizer


class Mover:
    """Moves one range of the elements of the files in each message."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        spec = ExperimentSpec.model_validate(told["spec"])
        self._algorithm = catalog.algorithm(ResolvedExperiment.of(spec))
        self._optimizer = ServerOptimizer(spec.server, spec.rounds)
        self._names: Mapping[str, str] = told["names"]
        self._held = {name: HeldRange(*range_) for name, range_ in told["held"].items()}
        torch.set_num_threads(told["threads"])

    def move(self, sent: Mapping[str, Array], meta: Mapping[str, Any]) -> None:
        before = Path(meta["before"])
        stored = arrays(before)
        mapped = tensors(before, stored)
        model = _module({name: mapped[called] for name, called in self._names.items()})
        state = {name.removeprefix(STATE): array for name, array in sent.items() if name.startswith(STATE)}
        result = decode(np.ascontiguousarray(sent["update"]).data)[0]
        with Writer(Path(meta["after"]), stored, self._names, self._held) as writer, moved_to(writer):
            self._optimizer.step(self._algorithm, model, state, result, meta["round"], meta["part"])


def _module(parameters: Mapping[str, Tensor]) -> nn.Module:
    """Returns a module that contains exactly these parameters under these names."""
    root = nn.Module()
    for name, tensor in parameters.items():
        *path, leaf = name.split(".")
        module = root
        for part in path:
            if part not in module._modules:
                module.add_module(part, nn.Module())
            module = module.get_submodule(part)
        module.register_parameter(leaf, nn.Parameter(tensor))
    return root


def main() -> None:
    """Serves standard input until it ends. Output of other code goes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    first = read(sys.stdin.buffer)
    if first is None:
        return
    mover = Mover(first[1])
    while (message := read(sys.stdin.buffer)) is not None:
        error: dict[str, Any] | None = None
        try:
            mover.move(*message)
        except FerretError as raised:
            error = raised.to_json()
        write(answers, {}, {"error": error})


if __name__ == "__main__":
    main()
