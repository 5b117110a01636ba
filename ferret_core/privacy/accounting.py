"""The ε of a participant's releases, and the noise that meets a target.

A release is a Poisson-sampled discrete Gaussian mechanism of sensitivity √K and noise z·√K in the sum of a group. For
integer vectors its Rényi divergences are at most the continuous Gaussian's (``docs/reference/record-privacy.md`` has
the argument), so the accountant of Mironov, Talwar and Zhang ("Rényi Differential Privacy of the Sampled Gaussian
Mechanism", 2019) in dp-accounting bounds it. Neighbours differ by one unit that is there or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from pydantic import Field

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.spec import StrictModel

ORDERS = (*range(2, 65), 72, 80, 96, 128, 192, 256)
"""Rényi orders; at integers the bound holds without approximation."""
TOLERANCE = 1e-3
LEAST_NOISE = 0.3
MOST_NOISE = 1e4


class Release(StrictModel):
    """``count`` releases: units were drawn with probability ``rate``, and the noise was z = ``noise_multiplier``."""

    rate: float = Field(gt=0, le=1)
    noise_multiplier: float = Field(gt=0)
    count: int = Field(ge=1, le=1000 * MAX_ROUNDS)


class RecordSpending(StrictModel):
    """All releases of a participant's records, failed attempts included."""

    released: tuple[Release, ...] = ()

    def and_one(self, rate: float, noise_multiplier: float) -> RecordSpending:
        """Returns the spending with one more release."""
        last = self.released[-1] if self.released else None
        if last is None or (last.rate, last.noise_multiplier) != (rate, noise_multiplier):
            made = Release(rate=rate, noise_multiplier=noise_multiplier, count=1)
            return RecordSpending(released=(*self.released, made))
        more = last.model_copy(update={"count": last.count + 1})
        return RecordSpending(released=(*self.released[:-1], more))

    def epsilon(self, delta: float) -> float:
        """Returns ε at ``delta``; 0 without releases. Raises ``dependency.missing`` without dp-accounting."""
        return _epsilon(tuple((each.rate, each.noise_multiplier, each.count) for each in self.released), delta)

    def require(self, epsilon: float, delta: float) -> None:
        """Raises ``privacy.spent`` if the spending exceeds ``epsilon``."""
        spent = self.epsilon(delta)
        if spent > epsilon:
            message = f"would be this participant's ε with one more release, and {epsilon:g} is the limit"
            raise FerretError.of_field("privacy.spent", "privacy.epsilon", round(spent, 4), message)


def epsilon_of(rate: float, noise_multiplier: float, releases: int, delta: float) -> float:
    """Returns ε at ``delta`` of equal releases. Raises ``dependency.missing`` without dp-accounting."""
    return _epsilon(((rate, noise_multiplier, releases),), delta)


def calibrate(rate: float, releases: int, epsilon: float, delta: float) -> float:
    """Returns the noise multiplier z with which ``releases`` together cost at most ``epsilon``, to 0.001.

    Raises ``spec.invalid`` if no noise does, and ``dependency.missing`` without dp-accounting.
    """
    low, high = LEAST_NOISE, 2 * LEAST_NOISE
    if epsilon_of(rate, low, releases, delta) <= epsilon:
        return low
    while (reached := epsilon_of(rate, high, releases, delta)) > epsilon:
        if high > MOST_NOISE:
            message = f"is below {reached:.3g}, the least that {releases} rounds can show at δ = {delta:g}: raise it"
            raise FerretError.of_field("spec.invalid", "privacy.epsilon", epsilon, message)
        low, high = high, 2 * high
    while high - low > TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of(rate, middle, releases, delta) > epsilon else (low, middle)
    return math.ceil(high / TOLERANCE) * TOLERANCE


@lru_cache(maxsize=256)
def _epsilon(releases: Sequence[tuple[float, float, int]], delta: float) -> float:
    if not releases:
        return 0.0
    require_accounting()
    import dp_accounting
    from dp_accounting import rdp

    accountant: Any = rdp.RdpAccountant(ORDERS)
    for rate, noise_multiplier, count in releases:
        event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise_multiplier))
        accountant.compose(event, count)
    return float(accountant.get_epsilon(delta))


def require_accounting() -> None:
    """Raises ``dependency.missing`` without the package that computes ε."""
    if find_spec("dp_accounting") is None:
        detail = "ε is computed by dp-accounting: pip install 'ferret-participant[train,privacy]'"
        raise FerretError("dependency.missing", detail)
