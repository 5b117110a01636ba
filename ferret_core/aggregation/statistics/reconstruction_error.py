"""Expected error of the reconstruction of a round's mean update: ‖Δ~ − Δ‖ / ‖Δ‖.

With N participants that have shares s_i, each with ‖Δ_i‖² and E‖noise_i‖² from its coordinates:

own       E‖Δ~ − Δ‖² = Σ s_i² E‖noise_i‖²,   ‖Δ‖² = Σ s_i² ‖Δ_i‖² + c Σ_{i≠j} s_i s_j ‖Δ_i‖‖Δ_j‖
          with c the mean cosine over the pairs, within two of its standard errors and between 0 and 1; anything between
          these where it is not known. That updates do not point away from one another is assumed.
shared    both follow from the mean's coordinates; ‖Δ‖² is known to √(2/K) of the energy in them, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ferret_core.aggregation.statistics.cosines import Cosines
from ferret_core.aggregation.statistics.projected_updates import UpdateNorms
from ferret_core.aggregation.statistics.schema import ReconstructionError, shortened
from ferret_core.protocol.wire import Array

CERTAIN = 2.0
"""Half-width of an estimate's range, in standard errors."""


def of_own(
    lengths: Mapping[str, UpdateNorms], shares: Mapping[str, float], cosines: Cosines | None, compared: Sequence[str]
) -> ReconstructionError | None:
    """Returns the error for participants with independent noise; None if all updates are zero."""
    squares = np.array([share**2 * lengths[name].squares.sum() for name, share in shares.items()])
    energies = np.array([share**2 * lengths[name].energies.sum() for name, share in shares.items()])
    alone, noise = float(squares.sum()), float((energies - squares).sum())
    together = float(np.sqrt(squares).sum() ** 2) - alone
    if not alone:
        return None
    low, middle, high = _mean_cosine(dict(zip(shares, np.sqrt(squares).tolist(), strict=True)), cosines, compared)
    return _error(noise, *(alone + cosine * together for cosine in (low, middle, high)))


def of_shared(noise: Array, squares: Array, K: Array) -> ReconstructionError | None:
    """Returns the error from the mean's ‖noise_l‖², ‖Δ_l‖² and K_l, fp64 (L,); None for a zero update."""
    known = K > 0
    spread = CERTAIN * math.sqrt(float((2 / K[known] * np.square(squares[known])).sum()))
    total = float(squares.sum())
    return _error(float(noise.sum()), max(total - spread, total / 4), total, total + spread) if total else None


def _mean_cosine(
    pulls: Mapping[str, float], cosines: Cosines | None, compared: Sequence[str]
) -> tuple[float, float, float]:
    """Returns the minimum, the expected value and the maximum."""
    if len(pulls) < 2:
        return 0.0, 0.0, 0.0
    chosen = np.array([pulls[name] for name in compared])
    if cosines is None or np.count_nonzero(chosen) < 2:
        return 0.0, 0.5, 1.0
    mean, error = cosines.mean(np.outer(chosen, chosen))
    low, middle, high = np.clip([mean - CERTAIN * error, mean, mean + CERTAIN * error], 0, 1).tolist()
    return low, middle, high


def _error(noise: float, least: float, expected: float, most: float) -> ReconstructionError:
    """Returns the error from E‖Δ~ − Δ‖² and the minimum, expected and maximum ‖Δ‖²."""
    high, middle, low = shortened(np.sqrt(max(noise, 0.0) / np.array([least, expected, most])))
    return ReconstructionError(expected=middle, low=low, high=high)
