"""A local update by all processes of a team: the model is sharded, and the processes share each step's parts.

    for each step, with sequences that pass through the model in parts (micro_batches.py), as with one process:
        the parts are taken in turns: in each, process r has part r of it; excess processes repeat the first part
        the gradients of the turn are added to the step's, in the order of the parts           (ordered_reduce.py)
        each parameter is moved whole by its owner                                          (sharded_optimizer.py)

With n parts a step is up to min(n, number of processes) times faster. Dropout draws from one generator, part after
part: with dropout every process goes through every part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from torch import nn

from ferret_core.datasets._client_data import Batch
from ferret_core.distributed.errors import typed
from ferret_core.distributed.process_group import require, waves
from ferret_core.protocol.errors import FerretError
from ferret_core.system.out_of_memory import memory_checked
from ferret_core.training.config import LocalConfig
from ferret_core.training.micro_batches import micro_batches
from ferret_core.training.ordered_reduce import add_in_order
from ferret_core.training.sharded_optimizer import OwnerOptimizer

REMEDY = "lower batch_size or set activation_checkpointing: a team does not make its parts smaller by itself"
Loss = Callable[[Batch], Any]
"""A part's contribution to the step's loss, before division: a differentiable scalar."""


class ShardedTraining:
    """Steps of a local update. Raises ``spec.invalid`` for options that need whole gradients on one process."""

    def __init__(self, model: nn.Module, config: LocalConfig, rate: float) -> None:
        if config.optimizer_in_backward:
            message = "steps of a model in shards are made after the backward pass: set it to false, or use one process"
            raise FerretError.of_field("spec.invalid", "algorithm.local.optimizer_in_backward", True, message)
        self._model, self._size = model, config.batch_size
        self._turn, self._sums = add_in_order(model)
        self._steps = OwnerOptimizer(model, config, rate)
        self._width = 1 if draws(model) else require().size

    def gradients(self, group: Sequence[Batch], counted: int, loss_of: Loss) -> tuple[float, float]:
        """Computes the gradients of the mean loss of ``group`` over ``counted``, and moves them to their owners.

        Returns the loss, and the L2 norm of its gradients.
        """
        with memory_checked(REMEDY), typed():
            total = self._backward(list(micro_batches(group, self._size)), counted, loss_of)
        for sums in self._sums:
            sums.begin()
        return total / counted, self._steps.gather()

    def step(self) -> None:
        """Moves the model by the gradients."""
        self._steps.step()

    def _backward(self, parts: Sequence[Batch], counted: int, loss_of: Loss) -> float:
        team, total = require(), 0.0
        for wave in waves(len(parts), self._width):
            self._turn.parts = len(wave)
            own = wave[team.rank] if team.rank < len(wave) else wave[0]
            # The next sum already includes this one.
            self._model.zero_grad()
            nll = loss_of(parts[own])
            (nll / counted).backward()
            for loss in team.numbers(nll.item())[: len(wave)]:
                total += loss
        return total


def draws(model: nn.Module) -> bool:
    """True if ``model`` draws random numbers in training, i.e. has dropout."""
    if any(isinstance(layer, nn.Dropout) and layer.p > 0 for layer in model.modules()):
        return True
    config: Any = getattr(model, "config", None)
    options = cast(Mapping[str, object], config.to_dict()) if config is not None else {}
    return any(isinstance(value, float) and value > 0 for name, value in options.items() if "drop" in name)
