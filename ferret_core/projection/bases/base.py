"""Basis families: each is one file with one final, stateless class ``Basis``, identified by a letter.

A family fixes, for every seed, block and K, a random matrix V of shape (d, K) that anyone can regenerate, such that
E[V·γ] = Δ for the γ that ``project_into`` adds up. A family is written plainly, over any stretch of a block;
``ferret_core/projection/kernels`` computes the same faster. A complete toy, dense ±1 columns held whole::

    class Basis:
        letter = "toy"

        def project_into(self, gamma, delta, block, start, seed):
            rows, K = torch.arange(start, start + len(delta)), len(gamma)
            terms = self.entries(rows, torch.arange(K), block, K, seed).T * delta
            gamma += torch.tensor([math.fsum(column) for column in terms.tolist()]) / K

        def reconstruct(self, coefficients, count, block, start, seed):
            K = len(coefficients)
            V = self.entries(torch.arange(start, start + count), torch.arange(K), block, K, seed)
            return sum(c * column for c, column in zip(coefficients, V.T, strict=True))

        def entries(self, rows, columns, block, K, seed):
            signs = np.random.default_rng([seed, block.id]).choice([-1.0, 1.0], (block.size, K))
            return torch.tensor(signs, dtype=torch.float32)[rows][:, columns]

        def moments(self, d):
            return Moments(1.0, 1.0)
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

from torch import Tensor

from ferret_core.projection.blocks import Block


class Moments(NamedTuple):
    """ρ = E v² and κ = E v⁴ / ρ² of an entry v of V."""

    rho: float
    kappa: float


class Basis(Protocol):
    """The interface of the class ``Basis`` in ``ferret_core/projection/bases/<name>.py``.

    Vectors are flat, contiguous and fp32; all of one call are on one device. A stretch is elements start … start + n −
    1 of the block; ``start`` is a multiple of 4096. Results are the same bytes for any number of threads.
    """

    letter: ClassVar[str]

    def project_into(self, gamma: Tensor, delta: Tensor, block: Block, start: int, seed: int) -> None:
        """Adds the contribution of the stretch Δ = ``delta`` (n,) to γ (K,), so that V·γ estimates Δ without bias."""
        ...

    def reconstruct(self, coefficients: Tensor, count: int, block: Block, start: int, seed: int) -> Tensor:
        """Returns ``count`` elements of V·c from ``start``, for c (K,): the same bits on any device, in any split."""
        ...

    def entries(self, rows: Tensor, columns: Tensor, block: Block, K: int, seed: int) -> Tensor:
        """Returns V[rows, columns], fp32 (len(rows), len(columns)), for int64 indices: the other methods' factors."""
        ...

    def moments(self, d: int) -> Moments:
        """Returns the moments of the entries of a block of ``d`` elements (of the non-zero ones, if V is sparse)."""
        ...
