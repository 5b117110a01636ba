"""Noise that random directions add to an update: the errors of docs/concepts/projection.md in numbers."""

from __future__ import annotations

from math import comb

from ferret_core.projection.coordinate_encoding import SIGNS, Kind
from ferret_core.projection.sparse_sign import energy


def truncated_normal_moments(d: int) -> tuple[float, float]:
    """Returns (ρ, κ) = (E v², E v⁴ / ρ²) of v = u·ε·(1 − a(1 − u²)), u uniform on (−1, 1), ε = 1/√d, a = ε²/6.

    These are exact for the drawn values at every d, so reconstruction is exactly unbiased. As a series, ρ = 1/(3d) −
    2/(45d²) + 2/(945d³): the paper's 1 − 2εψ(ε)/(2Φ(ε) − 1) up to the term in d⁻³, with an error of 4e-4 at d = 1 and
    below 1e-9 from d = 100. The printed form suffers from cancellation: in fp64 its error is 2e-4 at d = 1e8.
    """
    a = 1 / (6 * d)
    second, fourth = _power(2, a), _power(4, a)
    return second / d, fourth / second**2


def _power(p: int, a: float) -> float:
    """Returns E[(u(1 − a(1 − u²)))^p] for even p: binomial terms times E[u^p (1 − u²)^j]."""
    total, beta = 0.0, 1 / (p + 1)
    for j in range(p + 1):
        total += comb(p, j) * (-a) ** j * beta
        beta *= 2 * (j + 1) / (p + 2 * j + 3)
    return total


def relative_noise(basis: str, kind: Kind, d: int, K: int, sent: int | None = None) -> float:
    """Returns E‖Δ~ − Δ‖² / ‖Δ‖² of a reconstruction of a block of d elements from K coordinates; 0 if none is sent.

    ``sent``: number of the largest coordinates that are sent in a sparse encoding. The rounding of fp16 and int8 is
    ignored: it is far smaller.
    """
    if K == 0 or sent == 0:
        return 0.0
    return max(0.0, _spread(kind, K, sent) * _energy(basis, d, K) - 1)


def noise_share(basis: str, kind: Kind, d: int, K: int, sent: int | None = None) -> float:
    """Returns the share of a reconstruction's ‖Δ~‖² that is noise: from 0 to below 1."""
    noise = relative_noise(basis, kind, d, K, sent)
    return noise / (1 + noise)


def square_of(basis: str, kind: Kind, d: int, K: int, sent: int | None = None) -> float:
    """Returns f with E[f · ‖γ^‖²] = ‖Δ‖² for the K ≥ 1 coordinates γ^ of a block of d elements.

    The relative error of f · ‖γ^‖² is √(2/K) unless a few elements of Δ dominate; one-bit coordinates have the mean if
    they are almost normal.
    """
    return _square(basis, d, K) / _spread(kind, K, sent)


def _spread(kind: Kind, K: int, sent: int | None) -> float:
    """Returns ‖γ^‖² / ‖γ‖² of the K coordinates of a block; assumes normal numbers for encodings by sign."""
    return energy(K, K if sent is None else sent) if kind in SIGNS else 1.0


def _square(basis: str, d: int, K: int) -> float:
    """Returns f for coordinates in full precision."""
    match basis:
        case "R":
            return K
        case "T":
            return K * truncated_normal_moments(d)[0]
        case "H":
            return K / d
        case _:  # G
            return 1.0


def _energy(basis: str, d: int, K: int) -> float:
    """Returns E‖Δ~‖² / ‖Δ‖² with coordinates in full precision."""
    match basis:
        case "R":
            return 1 + (d - 1) / K
        case "T":
            return 1 + (d - 2 + truncated_normal_moments(d)[1]) / K
        case _:  # G, H
            return d / K
