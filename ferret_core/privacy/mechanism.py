"""The mechanism of an experiment: its noise, its room in a secure sum, and what the noise leaves of the signal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ferret_core.privacy import sampling
from ferret_core.privacy.accounting import calibrate, epsilon_of
from ferret_core.privacy.lattice import Integers
from ferret_core.privacy.noise import discrete_gaussian
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.secure.packing import Layout, Segment
from ferret_core.secure.roster import survivors_needed

SIGNAL = 0.2
"""Length of the mean of units' directions: a rough figure from one model of 3 M weights (decision 69)."""
LEAST_USEFUL = 100
"""Least K*; with fewer useful coordinates a model learns next to nothing."""
LEAST_DEVIATION = 4
"""Least σ of a draw of noise: sums of finer discrete Gaussians are not Gaussian enough (Kairouz et al. 2021)."""
MOST_BITS = 24
"""Most bits of a coordinate in a sum: a contribution holds integers modulo 2²⁴."""
ROOM = 24
"""Room in a ring in standard deviations: ±6, and twice that for sites with more records than promised."""


class RecordMechanism(NamedTuple):
    """Noise z = ``noise_multiplier`` and sampling of one round with at most ``members`` participants.

    ``honest`` of them at least add their noise and keep it secret: the least survivors without the colluders. With
    ``central`` noise it is 1, the server, which alone adds noise.
    """

    rate: float
    noise_multiplier: float
    batch: int
    members: int
    honest: int
    central: bool = False

    @classmethod
    def of(cls, spec: ExperimentSpec, members: int) -> RecordMechanism:
        """Returns the mechanism of a calibrated ``spec`` (:func:`calibrated`)."""
        privacy, secure = spec.privacy, spec.secure
        assert privacy.noise_multiplier is not None
        assert privacy.batch is not None
        honest = 1
        if not privacy.central:
            honest = survivors_needed(members, secure.least, secure.colluders) - secure.colluders
        return cls(privacy.rate, privacy.noise_multiplier, privacy.batch, members, honest, privacy.central)

    @property
    def draws(self) -> int:
        """Most draws of noise in a sum."""
        return 1 if self.central else self.members

    def deviation(self, K: int) -> float:
        """Returns σ of a draw: together the honest ones reach z·√K, the noise for sensitivity √K."""
        return self.noise_multiplier * math.sqrt(K / self.honest)

    def noise(self, K: int) -> Integers:
        """Draws noise (K,) from the system's entropy."""
        return discrete_gaussian(self.deviation(K), K)

    def bits(self, K: int) -> int:
        """Returns the bits of a coordinate in the sum; a sum that does not fit wraps, which costs accuracy alone."""
        noise = self.draws * self.deviation(K) ** 2
        return math.ceil(math.log2(ROOM * math.sqrt(noise + (SIGNAL * self.members * self.batch) ** 2)))

    @property
    def useful(self) -> float:
        """K*: the number of coordinates at which noise and the error of the projection are equal. Fewer lose signal to
        the projection, and beyond four times as many the noise alone counts."""
        together = SIGNAL * self.members * self.batch / self.noise_multiplier
        return together**2 * self.honest / self.draws

    def segment(self, K: int) -> Segment:
        """Returns the segment of a vector of K integers, which wraps."""
        return Segment(K, (1 << self.bits(K)) - 1, wraps=True)

    def layout(self, K: int) -> Layout:
        """Returns the layout of a vector of K integers."""
        return Layout([self.segment(K)], self.members)

    def require(self, K: int) -> None:
        """Raises ``spec.invalid`` for noise too fine or too coarse for the integers."""
        if self.bits(K) > MOST_BITS:
            message = f"needs {self.bits(K)} bits for a coordinate, at most {MOST_BITS} are possible: use fewer"
            raise FerretError.of_field("spec.invalid", "algorithm.K", K, message)
        if (deviation := self.deviation(K)) < LEAST_DEVIATION:
            needed = math.ceil(K * (LEAST_DEVIATION / deviation) ** 2)
            message = f"gives noise of {deviation:.2g} grid units in a draw, at least 4 are needed: use {needed}"
            raise FerretError.of_field("spec.invalid", "algorithm.K", K, message)


class RecordPrivacy(NamedTuple):
    """A participant's part: the mechanism, and the positions of each unit's examples in its shard."""

    mechanism: RecordMechanism
    units: Sequence[Sequence[int]]

    def draw(self) -> list[Sequence[int]]:
        """Draws the round's units by secret coins."""
        return [self.units[position] for position in sampling.draw(len(self.units), self.mechanism.rate)]

    def noised(self, total: Integers) -> Integers:
        """Returns the sum of the units' integers (K,) with this participant's noise; central noise comes later."""
        return total if self.mechanism.central else total + self.mechanism.noise(len(total))


def units_of(values: Sequence[str], spec: ExperimentSpec) -> Sequence[Sequence[int]]:
    """Returns the positions of each unit's examples, from each example's value of the unit's field.

    Raises ``privacy.too_few_records`` for fewer units than promised, and ``privacy.unit_missing`` for an empty value.
    """
    privacy = spec.privacy
    if privacy.field is None:
        found: list[list[int]] = [[position] for position in range(len(values))]
    else:
        by_value = dict[str, list[int]]()
        for position, value in enumerate(values):
            if not value:
                message = f"example {position + 1} has no unit: a site names the field, --field unit={privacy.field}"
                raise FerretError.of_field("privacy.unit_missing", "privacy.unit", privacy.unit, message)
            by_value.setdefault(value, []).append(position)
        found = list(by_value.values())
    least = privacy.records_least or 0
    if len(found) < least:
        message = f"units are here, and the experiment's ε is computed for at least {least}: add data, or stay out"
        raise FerretError.of_field("privacy.too_few_records", "privacy.records_least", len(found), message)
    return found


def calibrated(spec: ExperimentSpec, members: int) -> ExperimentSpec:
    """Returns ``spec`` with its noise multiplier, for rounds of ``members``; unchanged without protected records.

    Raises ``privacy.meaningless`` if the noise leaves fewer than 100 useful coordinates, ``spec.invalid`` for an
    ε that the noise or the rounds cannot meet, and ``dependency.missing`` if noise must be computed without
    dp-accounting.
    """
    privacy = spec.privacy
    if not privacy.of_records:
        return spec
    noise, target = privacy.noise_multiplier, privacy.epsilon
    if noise is None:
        assert target is not None
        noise = calibrate(privacy.rate, spec.rounds, target, privacy.delta)
    reached = _reached(spec, noise)
    if reached is not None and target is not None and reached > target:
        message = f"gives ε = {reached:.3g} after {spec.rounds} rounds, above {target:g}: leave it out, it is computed"
        raise FerretError.of_field("spec.invalid", "privacy.noise_multiplier", noise, message)
    spec = spec.model_copy(update={"privacy": privacy.model_copy(update={"noise_multiplier": noise})})
    mechanism = RecordMechanism.of(spec, members)
    if isinstance(K := spec.algorithm.options.get("K"), int):
        mechanism.require(K)
    if (useful := mechanism.useful) < LEAST_USEFUL:
        shown = "" if reached is None else f" (ε = {reached:.3g})"
        message = (
            f"leaves K* = {useful:.3g} useful coordinates{shown}, at least {LEAST_USEFUL} are needed: raise "
            "epsilon, batch with records_least, or the participants; or take fewer rounds"
        )
        raise FerretError.of_field("privacy.meaningless", "privacy.epsilon", target, message)
    return spec


def _reached(spec: ExperimentSpec, noise: float) -> float | None:
    """Returns ε after all rounds; None without dp-accounting, where each participant's account holds the limit."""
    try:
        return epsilon_of(spec.privacy.rate, noise, spec.rounds, spec.privacy.delta)
    except FerretError as error:
        if error.code != "dependency.missing":
            raise
        return None


def wrapped(values: Integers, bits: int) -> np.ndarray:
    """Returns integers modulo 2^``bits``, as uint32."""
    return (values & ((1 << bits) - 1)).astype(np.uint32)


def unwrapped(words: np.ndarray, bits: int) -> Integers:
    """Returns the integers of words, from −2^(bits − 1) on."""
    values = words.astype(np.int64)
    return np.where(values >> (bits - 1), values - (1 << bits), values)
