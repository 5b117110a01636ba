"""Cosines between participants' updates, with the standard error caused by sampling.

For each block l there are products G_l, estimates of ⟨Δ_i,l, Δ_j,l⟩ for every pair of participants, with variances V_l,
and s_i, an estimate of ‖Δ_i‖². Blocks are independent, so

    cos_ij = Σ_l G_l,ij / √(s_i s_j),   standard error √(Σ_l V_l,ij) / √(s_i s_j)

The error of s is left out: √(2/K) of it. Under a shared seed it is correlated with the error of the product and lowers
the cosine's, so the reported error is too large; otherwise it is far below the product's. There are three ways to G_l:

shared   all coordinates belong to the same directions: G is f ⟨γ_i, γ_j⟩ with the factor f of
         :func:`ferret_core.projection.variance.square_of`, V = ‖Δ_i‖²‖Δ_j‖² times E‖Δ~ − Δ‖²/(‖Δ‖² d). One-bit
         coordinates of normal numbers with correlation r agree by (2/π) asin r (Sheppard, 1899), so r is the sine of
         the observed value.
own      reconstructions of independent noise: ⟨Δ~_i, Δ~_j⟩ has the mean ⟨Δ_i, Δ_j⟩ and, over m of a
         block's d weights, V = ‖Δ~_i‖²‖Δ~_j‖²/m: a standard error of √d/K if all weights are used and K ≪ d.
         One-bit coordinates of few elements each, one of them dominant, are not normal: docs/concepts/projection.md.
dense    the updates themselves, at m of a block's d weights, one drawn from each of m equal stretches:
         V = d² (1/m − 1/d) Var(x y) over the drawn weights; 0 for m = d.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ferret_core.aggregation.statistics.schema import CosineMatrix, shortened
from ferret_core.protocol.wire import Array

COMPARED = 60
"""Maximum number of participants compared: the first in the order of their names."""


class InnerProducts(NamedTuple):
    """fp64 (N, N), of one block: estimates of ⟨Δ_i, Δ_j⟩ and their variances."""

    estimates: Array
    variances: Array


class Cosines(NamedTuple):
    """fp64 (N, N) and symmetric; NaN if one of the pair has a zero update."""

    values: Array
    errors: Array

    def agreement(self, participants: Sequence[str]) -> CosineMatrix:
        above = np.triu_indices(len(participants), 1)
        return CosineMatrix(
            participants=list(participants), cosines=_numbers(self.values[above]), errors=_numbers(self.errors[above])
        )

    def mean(self, weights: Array) -> tuple[float, float]:
        """Returns the mean over pairs of different participants by ``weights`` (N, N), and its standard error; errors
        of different pairs are uncorrelated.
        """
        above = np.triu_indices(len(weights), 1)
        known = np.isfinite(self.values[above])
        shares = weights[above][known] / weights[above][known].sum()
        error = math.sqrt(float(np.square(shares * self.errors[above][known]).sum()))
        return float((shares * self.values[above][known]).sum()), error


def cosines(blocks: Iterable[InnerProducts], squares: Array | None = None) -> Cosines:
    """Returns cosines from the products of all blocks and fp64 (N,) ‖Δ_i‖², by default the products' diagonal."""
    products = list(blocks)
    estimates, variances = (np.sum([each[which] for each in products], axis=0) for which in (0, 1))
    own = np.diag(estimates) if squares is None else squares
    lengths = np.sqrt(np.outer(own, own))
    with np.errstate(divide="ignore", invalid="ignore"):
        values, errors = estimates / lengths, np.sqrt(variances) / lengths
    moved = lengths > 0
    return Cosines(np.where(moved, values, np.nan), np.where(moved, errors, np.nan))


def of_shared(rows: Array, squares: Array, spread: float, *, signs: bool) -> InnerProducts:
    """Returns products from coordinates fp32 (N, K) and fp64 (N,) ‖Δ_i‖²; ``spread`` is E‖Δ~ − Δ‖²/(‖Δ‖² d)."""
    lengths = np.sqrt(np.outer(squares, squares))
    wide = rows.astype(np.float64)
    inner = wide @ wide.T
    norms = np.sqrt(np.outer(np.diag(inner), np.diag(inner)))
    seen = np.divide(inner, norms, out=np.zeros_like(inner), where=norms > 0)
    if signs:
        seen = np.sin(math.pi / 2 * np.clip(seen, -1, 1))
        spread += (math.pi**2 / 4 - 1) / max(rows.shape[1], 1)
    return InnerProducts(seen * lengths, lengths**2 * spread)


def of_reconstructions(inner: Array, drawn: int, size: int, energies: Array) -> InnerProducts:
    """Returns products from fp64 (N, N) inner products over m = ``drawn`` of the block's ``size`` reconstructed
    weights, and fp64 (N,) expected ‖Δ~_i‖².
    """
    return InnerProducts(inner * (size / drawn), np.outer(energies, energies) / drawn)


def of_weights(rows: Array, size: int) -> InnerProducts:
    """Returns products from the updates at m of the block's ``size`` weights, fp32 (N, m)."""
    drawn = rows.shape[1]
    wide = rows.astype(np.float64)
    mean = wide @ wide.T / drawn
    spread = np.square(wide) @ np.square(wide).T / drawn - mean**2
    return InnerProducts(size * mean, size**2 * (1 / drawn - 1 / size) * np.maximum(spread, 0))


def _numbers(values: Array) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in shortened(values)]
