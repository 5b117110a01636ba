"""Ordered sum of the gradients of a step's parts that several processes computed.

A floating-point sum depends on its order. A single process adds the gradient of each part to the previous ones, so the
same is done here: every process sends each of the others its chunk of the gradient. The holder of a shard adds the
received chunks in the order of the parts, to the sum of the previous turns. FSDP2 itself would add all chunks together,
in an arbitrary order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ferret_core.distributed.process_group import require


class ReduceTurn:
    """The number of processes with a separate part in the running turn; these are the first ones."""

    def __init__(self) -> None:
        self.parts = 1


class OrderedReduceScatter:
    """FSDP2's reduce-scatter of one layer: the sum over the turns since :meth:`begin`, each in the order of ranks."""

    def __init__(self, turn: ReduceTurn) -> None:
        self._turn = turn
        self._total: Tensor | None = None

    def begin(self) -> None:
        """Starts a step with an empty sum; the previous sum then belongs only to the gradients."""
        self._total = None

    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: Any, op: Any, async_op: bool = False
    ) -> None:
        team = require()
        received = team.exchanged(input_tensor.view(team.size, -1))
        chunks = received[: self._turn.parts]
        first, rest = (chunks[0], chunks[1:]) if self._total is None else (self._total, chunks)
        output_tensor.copy_(first)
        for chunk in rest:
            output_tensor.add_(chunk)
        # FSDP2 uses the memory that is passed in here for the gradients: the sum is stored once.
        self._total = output_tensor


def add_in_order(model: nn.Module) -> tuple[ReduceTurn, list[OrderedReduceScatter]]:
    """Makes the layers of a sharded model add up their gradients in the order of the parts."""
    from torch.distributed.fsdp import FSDPModule

    turn = ReduceTurn()
    sums: list[OrderedReduceScatter] = []
    for layer in model.modules():
        if isinstance(layer, FSDPModule):
            sums.append(OrderedReduceScatter(turn))
            layer.set_custom_reduce_scatter(sums[-1])  # pyrefly: ignore[bad-argument-type]
    return turn, sums
