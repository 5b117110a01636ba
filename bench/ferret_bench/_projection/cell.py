"""One thing to measure: an operation of a way, over one block of fp32 vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ferret_bench._projection.implementations import Contribution, Way, one_block

WEIGHT_BYTES = 4


class Cell(NamedTuple):
    """A cell. ``contributions`` is 1 for projecting."""

    way: Way
    operation: str
    elements: int
    K: int
    contributions: int

    @property
    def work(self) -> int:
        """The quantity that its time is proportional to."""
        return self.elements * self.contributions * (self.K if self.way.dense else 1)

    @property
    def bytes_per_element(self) -> int:
        """The bytes that must move between processor and memory.

        Projecting reads two vectors; applying reads and writes one, however many contributions. The naive way also
        writes each vector that it draws, reads it, and reads the update again or reads and writes the weights.
        """
        if self.way.name != "naive":
            return 2 * WEIGHT_BYTES
        vectors = self.K * self.contributions
        return WEIGHT_BYTES * (3 * vectors + 3 if self.operation == "project" else 4 * vectors)

    @property
    def scratch_bytes(self) -> int:
        """The approximate bytes in addition to ``before`` and ``after``: the naive way holds Δ, a vector and five to
        draw it.
        """
        return self.elements * WEIGHT_BYTES * 7 if self.way.name == "naive" else 1 << 28

    def to_json(self) -> dict[str, Any]:
        return {
            "way": self.way.name,
            "operation": self.operation,
            "d": self.elements,
            "K": self.K,
            "N": self.contributions,
        }


class Vectors(NamedTuple):
    """A block before and after training, every page touched."""

    before: Tensor
    after: Tensor

    @classmethod
    def random(cls, elements: int, device: torch.device) -> Vectors:
        before = torch.empty(elements, device=device).uniform_(-0.05, 0.05)
        return cls(before, before + 1e-3)

    def action(self, cell: Cell) -> Callable[[], Any]:
        """One call of the cell's operation, its coefficients drawn beforehand."""
        block, before, after = one_block(cell.elements), {"w": self.before}, {"w": self.after}
        if cell.operation == "project":
            return lambda: cell.way.project(before, after, [block], [cell.K], 1)
        sent = [
            Contribution(seed, [torch.randn(cell.K, device=self.after.device) * 1e-6])
            for seed in range(cell.contributions)
        ]
        return lambda: cell.way.apply_(after, [block], sent)
