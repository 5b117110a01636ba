"""ε is dp-accounting's, and a true bound: it covers the privacy loss of the exact distributions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp

from ferret_core.privacy.accounting import ORDERS, RecordSpending, calibrate, epsilon_of
from tests.refusals import refused

DELTA = 1e-6


@pytest.mark.parametrize(("rate", "noise", "releases"), [(0.05, 0.896, 200), (0.01, 2.0, 1000), (1.0, 20.0, 12)])
def test_epsilon_is_that_of_dp_accounting(rate: float, noise: float, releases: int) -> None:
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))
    theirs = rdp.RdpAccountant(ORDERS).compose(event, releases).get_epsilon(DELTA)
    assert epsilon_of(rate, noise, releases, DELTA) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize(
    ("vector", "parties", "rate", "noise", "releases"),
    [
        ([1] * 16, 3, 0.05, 1.0, 200),  # the unit spread over all coordinates
        ([4] + [0] * 15, 3, 0.05, 1.0, 200),  # in one coordinate
        ([2, 2, -2, 1, 1, 1, 1] + [0] * 9, 1, 0.05, 1.0, 200),
        ([3, -2, 1, 1, 1] + [0] * 11, 3, 0.2, 3.4, 60),
        ([1] * 16, 3, 1.0, 20.0, 12),  # without sampling
    ],
)
def test_epsilon_covers_the_exact_distributions(
    vector: Sequence[int], parties: int, rate: float, noise: float, releases: int
) -> None:
    """The likelihood ratio depends on Σ vₖxₖ alone, whose distribution is a convolution of discrete Gaussians."""
    K = len(vector)
    shift = sum(each * each for each in vector)
    assert shift <= K
    deviation = noise * np.sqrt(K / parties)
    assert deviation >= 2
    out = statistic(vector, parties, deviation, shift)
    moved = np.roll(out, shift)
    mixed = (1 - rate) * out + rate * moved
    bound = epsilon_of(rate, noise, releases, DELTA)
    exact = [exact_epsilon(*pair, releases) for pair in ((mixed, out), (out, mixed))]
    assert max(exact) <= bound
    assert bound < 1.2 * max(exact), "a bound far above would waste the budget"


def statistic(vector: Sequence[int], parties: int, deviation: float, room: int) -> np.ndarray:
    """The chances of Σ vₖxₖ, with each xₖ a sum of ``parties`` discrete Gaussians; room for a shift to either side."""
    reach = round(12 * deviation)
    points = np.arange(-reach, reach + 1)
    single = np.exp(-(points**2) / (2 * deviation**2))
    single /= single.sum()

    def times(factor: int) -> np.ndarray:
        spread = np.zeros(2 * reach * abs(factor) + 1)
        spread[:: abs(factor)] = single
        return spread

    parts = [times(each) for each in vector if each for _ in range(parties)]
    size = sum(len(part) for part in parts) + 2 * room
    full = np.fft.irfft(reduce(np.multiply, (np.fft.rfft(part, size) for part in parts)), size)
    return np.roll(np.clip(full, 0, None), room)


def exact_epsilon(first: np.ndarray, second: np.ndarray, releases: int) -> float:
    """ε by numeric composition, rounded up; chances below 10⁻¹⁴, together below the 10⁻⁹ of δ, are left out."""
    kept = (first > 1e-14) & (second > 1e-14)
    upper, lower = (
        {int(place): float(np.log(chances[place])) for place in np.flatnonzero(kept)} for chances in (first, second)
    )
    found = pld.privacy_loss_distribution.from_two_probability_mass_functions(
        lower, upper, value_discretization_interval=1e-4
    )
    return float(found.self_compose(releases).get_epsilon_for_delta(DELTA - 1e-9))


def test_calibrated_noise_meets_the_target_closely() -> None:
    """The figures of the research: 0.896, 1.483 and 3.427."""
    for epsilon, expected in ((8.0, 0.896), (3.0, 1.483), (1.0, 3.427)):
        found = calibrate(0.05, 200, epsilon, DELTA)
        assert found == pytest.approx(expected, abs=0.003)
        assert 0.99 * epsilon < epsilon_of(0.05, found, 200, DELTA) <= epsilon


def test_a_target_that_no_noise_meets_is_refused() -> None:
    with refused("spec.invalid", "the least that 200 rounds", field="privacy.epsilon"):
        calibrate(0.05, 200, 0.01, 1e-15)


def test_spending_adds_up_over_noise_that_changes() -> None:
    spending = RecordSpending()
    assert spending.epsilon(DELTA) == 0
    for _ in range(3):
        spending = spending.and_one(0.05, 1.0)
    mixed = spending.and_one(0.05, 2.0)
    assert [each.count for each in mixed.released] == [3, 1]
    assert spending.epsilon(DELTA) == epsilon_of(0.05, 1.0, 3, DELTA)
    assert spending.epsilon(DELTA) < mixed.epsilon(DELTA) < spending.and_one(0.05, 1.0).epsilon(DELTA)
    spending.require(spending.epsilon(DELTA), DELTA)
    with refused("privacy.spent", "0.5 is the limit", field="privacy.epsilon"):
        spending.require(0.5, DELTA)
