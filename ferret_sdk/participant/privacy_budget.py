"""A site's privacy budget: the privacy loss of its noised contributions, over all its experiments together.

Each contribution is one Gaussian mechanism (Dwork and Roth 2014, appendix A). Its vector is clipped to L2 norm S and
gets noise of standard deviation σ = z·S. Two datasets that have nothing in common give clipped vectors that are at most
2S apart, so for the replacement of *all* of the site's data it is μ-GDP with μ = 2S/σ = 2/z (Dong, Roth and Su,
"Gaussian Differential Privacy", 2022, theorem 2.7). The model of a round depends on earlier contributions, which
adaptive composition allows: μ² = Σ (2/zᵢ)² (there, corollary 3.3), also if z changes on the way (Smith and Thakurta,
"Fully Adaptive Composition for Gaussian Differential Privacy", 2022). ε at δ is then that of one Gaussian mechanism
(Balle and Wang 2018, theorem 8), computed by dp-accounting.

A contribution is recorded on disk as spent before its first example is used. So a failure or a killed process costs as
much as a contribution. A contribution that is sent again has the same bytes and costs nothing.
"""

from __future__ import annotations

import math
from pathlib import Path

from pydantic import Field

from ferret_core.privacy.accounting import require_accounting
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import StrictModel
from ferret_core.system.atomic_files import write_durably
from ferret_core.training.privacy import Gaussian, ReleasePolicy
from ferret_sdk.participant.lock import in_turn
from ferret_sdk.participant.paths import participants_folder, read_stored
from ferret_sdk.participant.site_terms import Privacy

SENSITIVITY = 2.0
"""Sensitivity of a clipped vector, in units of its bound, if any dataset may be replaced by any other."""


class ReleaseCount(StrictModel):
    """The number of contributions made with noise of ``noise_multiplier`` times the clipping norm."""

    noise_multiplier: float = Field(gt=0)
    count: int = Field(ge=1)


class PrivacySpending(StrictModel):
    """All contributions of a home, under any terms."""

    released: tuple[ReleaseCount, ...] = ()

    @property
    def mu(self) -> float:
        """μ of their composition; 0 without contributions."""
        return math.sqrt(sum(made.count * (SENSITIVITY / made.noise_multiplier) ** 2 for made in self.released))

    def and_one(self, noise_multiplier: float) -> PrivacySpending:
        last = self.released[-1] if self.released else None
        if last is None or last.noise_multiplier != noise_multiplier:
            return PrivacySpending(released=(*self.released, ReleaseCount(noise_multiplier=noise_multiplier, count=1)))
        more = ReleaseCount(noise_multiplier=noise_multiplier, count=last.count + 1)
        return PrivacySpending(released=(*self.released[:-1], more))


class Budget:
    """The budget of ``home`` under the terms ``privacy``; safe to use from several processes."""

    def __init__(self, home: Path, privacy: Privacy) -> None:
        self.privacy = privacy
        self._path = participants_folder(home) / "privacy.json"

    def discretion(self) -> ReleasePolicy:
        """Privacy of a contribution: the vector is clipped and noised, and nothing else about the data is sent."""
        noise = Gaussian(self.privacy.clip, self.privacy.noise_multiplier)
        return ReleasePolicy(metrics=frozenset(), examples=False, protect=noise)

    def spent(self) -> PrivacySpending:
        """Returns the spending so far. Raises ``terms.invalid`` for an unreadable file: that would reset the budget."""
        return read_stored(self._path, PrivacySpending, "the spent privacy budget: restore it")

    def epsilon(self, spending: PrivacySpending) -> float:
        """Returns ε of the spending, at the terms' δ."""
        return gaussian_epsilon(spending.mu, self.privacy.delta)

    def left(self) -> int:
        """Returns the number of contributions that still fit into the budget."""
        spent, each = self.spent().mu ** 2, (SENSITIVITY / self.privacy.noise_multiplier) ** 2
        fits, beyond = -1, 1
        while self._within(spent + beyond * each):
            fits, beyond = beyond, 2 * beyond
        while beyond - fits > 1:
            middle = (fits + beyond) // 2
            fits, beyond = (middle, beyond) if self._within(spent + middle * each) else (fits, middle)
        return max(fits, 0)

    def require(self) -> None:
        """Raises ``terms.limit_reached`` unless one more contribution fits."""
        self._require(self.spent())

    def spend(self) -> None:
        """Records one contribution durably, before its first example is used: a failed attempt costs as much.

        Raises ``terms.limit_reached`` if it does not fit.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with in_turn(self._path.with_suffix(".lock"), lambda: None):
            spent = self.spent()
            self._require(spent)
            write_durably(self._path, spent.and_one(self.privacy.noise_multiplier).model_dump_json().encode())

    @staticmethod
    def require_noised(discretion: ReleasePolicy) -> None:
        """Raises ``terms.refused`` unless the algorithm noised exactly one vector, as the budget assumes."""
        assert isinstance(discretion.protect, Gaussian)
        if discretion.protect.uses != 1:
            message = "vectors were noised, and one is what the budget counts: this algorithm cannot be used with it"
            raise FerretError.of_field("terms.refused", "privacy", discretion.protect.uses, message)

    def _require(self, spent: PrivacySpending) -> None:
        after = self.epsilon(spent.and_one(self.privacy.noise_multiplier))
        if after > self.privacy.epsilon:
            message = f"would be the site's ε after another contribution, its budget is {self.privacy.epsilon:g}"
            raise FerretError.of_field("terms.limit_reached", "epsilon", round(after, 4), message)

    def _within(self, squared: float) -> bool:
        return gaussian_epsilon(math.sqrt(squared), self.privacy.delta) <= self.privacy.epsilon


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Returns ε at ``delta`` of a ``mu``-GDP mechanism. Raises ``dependency.missing`` without dp-accounting."""
    require_accounting()
    import dp_accounting

    return float(dp_accounting.get_epsilon_gaussian(1 / mu, delta)) if mu else 0.0
