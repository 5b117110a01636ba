"""Kernels: implementations of a basis family, over whole pieces of a model of any float type.

Kernels differ only in speed. All give the same bits of the weights after ``apply_``; coordinates may differ in the
order of their sums, but never by thread count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from ferret_core.projection.blocks import Block


class ReconstructionTerm(NamedTuple):
    """One contribution to a block: its seed and its coefficients, fp32 (K_l,).

    Coefficients are coordinates already multiplied by learning rate and weight.
    """

    seed: int
    coefficients: Tensor


class ProjectionInput(NamedTuple):
    """Elements ``start`` … of a block before and after, and the block's number of coordinates."""

    before: Tensor
    after: Tensor
    block: Block
    K: int
    start: int = 0

    @property
    def moved(self) -> Tensor:
        return self.after


class UpdateInput(NamedTuple):
    """Elements ``start`` … of a block, and the terms that move them."""

    weights: Tensor
    block: Block
    terms: Sequence[ReconstructionTerm]
    start: int = 0

    @property
    def moved(self) -> Tensor:
        return self.weights


class Kernel(Protocol):
    """A kernel. Vectors are flat, contiguous, of float32, bfloat16 or float16, and on the kernel's device.

    They hold elements ``start`` … ``start + n − 1`` of ``block``, for any ``start``. Arithmetic is in fp32. Memory
    beyond arguments and result stays within some tens of megabytes and a few times K.
    """

    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        """Returns the contribution of Δ = before − after, both (n,), to the block's coordinates γ: fp32 (K,), K ≥ 1."""
        ...

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        """Computes weights (n,) ← weights − V·c for each term in turn, in place; then half types are rounded once.

        ``rounding`` is the seed of that rounding (:mod:`ferret_core.projection.stochastic_rounding`). Terms without
        coefficients change nothing; weights without terms keep their bits.
        """
        ...


@runtime_checkable
class Batched(Kernel, Protocol):
    """A kernel that processes vectors of many blocks together, all on one device."""

    def project_all(self, pairs: Sequence[ProjectionInput], seed: int) -> list[Tensor]:
        """Returns the result of ``project`` for each pair."""
        ...

    def apply_all_(self, moves: Sequence[UpdateInput], rounding: int = 0) -> None:
        """Applies ``apply_`` to each move."""
        ...
