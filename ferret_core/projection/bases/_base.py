"""What a basis family is: one file, one final, stateless class ``Basis``, known by a letter.

A family fixes, for every seed, block and K, a random matrix V of shape (d, K) whose entries anyone can
regenerate, such that E[V·γ] = Δ for γ = ``project(...)``. A complete toy, dense ±1 columns held whole::

    class Basis:
        letter = "toy"

        def project(self, before, after, block, K, seed):
            return self._V(block, K, seed).T @ (before - after) / K

        def apply_(self, weights, block, terms):
            for seed, coefficients in terms:
                weights -= self._V(block, len(coefficients), seed) @ coefficients

        def entries(self, rows, columns, block, K, seed):
            return self._V(block, K, seed)[rows][:, columns]

        def moments(self, d):
            return Moments(1.0, 1.0)

        def _V(self, block, K, seed):
            signs = np.random.default_rng([seed, block.id]).choice([-1.0, 1.0], (block.size, K))
            return torch.tensor(signs, dtype=torch.float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

from torch import Tensor

from ferret_core.projection.blocks import Block

Term = tuple[int, Tensor]
"""A seed with its coefficients, fp32 (K_l,): coordinates already multiplied by learning rate and weight."""


class Moments(NamedTuple):
    """ρ = E v² and κ = E v⁴ / ρ² of an entry v of V."""

    rho: float
    kappa: float


class Basis(Protocol):
    """The interface of ``ferret_core/projection/bases/<name>.py``'s class ``Basis``.

    Vectors are flat, contiguous and fp32; all of one call lie on one device. Results are the same bytes for any
    number of threads. Memory beyond arguments and result stays within some tens of megabytes and a few times K.
    """

    letter: ClassVar[str]

    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int) -> Tensor:
        """Coordinates γ (K,) of Δ = before − after, both (d,), scaled so that V·γ is an unbiased estimate of Δ."""
        ...

    def apply_(self, weights: Tensor, block: Block, terms: Sequence[Term]) -> None:
        """weights (d,) ← weights − V·c for each term in turn, in place, the same bits on every device."""
        ...

    def entries(self, rows: Tensor, columns: Tensor, block: Block, K: int, seed: int) -> Tensor:
        """V[rows, columns], fp32 (len(rows), len(columns)), for int64 indices: what the other methods multiply by."""
        ...

    def moments(self, d: int) -> Moments:
        """Moments of the entries of a block of ``d`` elements (of the non-zero ones, where V is sparse)."""
        ...
