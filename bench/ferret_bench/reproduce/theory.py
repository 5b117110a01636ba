"""The measurements' expected values, in closed form.

An unbiased Δ~ with E‖Δ~ − Δ‖² = error·‖Δ‖² has ‖Δ~‖² ≈ (1 + error)·‖Δ‖² and ⟨Δ~, Δ⟩ ≈ ‖Δ‖². So its cosine with Δ is (1
+ error)^(−½), and the share of Δ's energy that it captures, scaled optimally, is the square of that.
"""

from __future__ import annotations

import math

from ferret_core.projection.bases import basis
from ferret_core.projection.coordinate_encoding import Precision

ORTHOGONAL = frozenset("GH")
NOISE: dict[Precision, float] = {"float32": 0.0, "float16": 0.0, "int8": 0.0, "sign": math.pi / 2 - 1}
"""‖γ^ − γ‖²/‖γ‖² of Gaussian coordinates; that of int8, some 1e-4, is less than a line is wide."""


def error(letter: str, d: int, K: int, noise: float = 0) -> float:
    """E‖Δ~ − Δ‖²/‖Δ‖²: (d − 2 + κ)/K for independent entries, d/K − 1 for orthogonal columns.

    ``noise`` is ‖γ^ − γ‖²/‖γ‖² of coordinates that are inexact; d/K times that comes on top.
    """
    exact = d / K - 1 if letter in ORTHOGONAL else (d - 2 + basis(letter).moments(d).kappa) / K
    return exact + noise * d / K


def cosine(letter: str, d: int, K: int, noise: float = 0) -> float:
    return 1 / math.sqrt(1 + error(letter, d, K, noise))


def bound(d: int, K: int) -> float:
    """The paper's theorem 2: E‖Δ~ − Δ‖/‖Δ‖ ≤ max(2√q, q) with q = 2·ln(2d)/(ρK)."""
    q = 2 * math.log(2 * d) / (basis("T").moments(d).rho * K)
    return max(2 * math.sqrt(q), q)


def mean_error(seeds: str, d: int, K: int, N: int, c: float) -> float:
    """Returns E‖mean of N reconstructions − mean of N updates‖² over the mean ‖Δᵢ‖², orthogonal columns, pairwise
    cosine c.

    With own seeds errors are independent, with one shared seed they equal the mean update's.
    """
    alone = d / K - 1
    return alone / N if seeds == "own" else alone * (1 + (N - 1) * c) / N
