"""What a participant withholds: figures that it does not report, and noise on what it sends.

All that leaves with a contribution is computed from one vector (coordinates, an update, slopes). Clipping that vector
to L2 norm S and adding Gaussian noise of standard deviation σ to each of its entries, before anything is quantised or
chosen by size, makes the contribution as a whole differentially private (Dwork and Roth 2014, appendix A): what follows
looks at the noised vector alone. Any two datasets give vectors that are at most 2S apart, so this protects all of the
participant's examples at once, not only one of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array

CHUNK = 1 << 20
"""Entries that get their noise at once: what it takes beside the vector does not grow with the model."""
UNSAID = 1
"""The number of examples that is reported where it is withheld."""


class Discretion(NamedTuple):
    """``metrics``: the only ones that are reported, None for all;
    ``examples``: whether their number is; ``protect``: what becomes of the vector that a contribution is made of."""

    metrics: frozenset[str] | None = None
    examples: bool = True
    protect: Callable[[Array], Array] | None = None

    def reports(self, name: str) -> bool:
        return self.metrics is None or name in self.metrics

    def reported(self, metrics: Mapping[str, float]) -> dict[str, float]:
        return {name: value for name, value in metrics.items() if self.reports(name)}

    def timed(self, seconds: float) -> float:
        """The seconds of training that are reported; none where the number of examples is withheld."""
        return seconds if self.examples else 0.0

    def counted(self, examples: int) -> int:
        return examples if self.examples else UNSAID


class Gaussian:
    """Clips a vector to L2 norm ``clip`` and adds noise of standard deviation ``noise`` · ``clip`` to its entries.

    ``uses`` counts the vectors, so that whoever sends can see that one was protected, and no more than one.
    """

    def __init__(self, clip: float, noise: float) -> None:
        self._clip = clip
        self._noise = noise
        self.uses = 0
        self.norm = 0.0
        """Of the last vector, before it was clipped; it stays here."""

    def __call__(self, vector: Array) -> Array:
        """fp32, of the shape of ``vector``; ``training.non_finite`` for one that has no length."""
        self.uses += 1
        self.norm = float(np.sqrt(np.square(vector, dtype=np.float64).sum()))
        if not np.isfinite(self.norm):
            raise FerretError.of_field("training.non_finite", "update", self.norm, "has no length to be clipped to")
        factor = min(1.0, self._clip / self.norm) if self.norm else 1.0
        noised = np.empty(vector.shape, np.float32)
        for start in range(0, len(vector), CHUNK):
            part = vector[start : start + CHUNK].astype(np.float64) * factor
            noised[start : start + CHUNK] = part + self._noise * self._clip * gaussian(len(part))
        return noised


def gaussian(count: int) -> Array:
    """Standard normal numbers, fp64 (count,), from the system's own entropy, which no seed of the server's gives away.

    Each is the sum of four of Box and Muller's over 2: of a single one, its last bits could tell what it was added to
    (Mironov, CCS 2012); with four that takes too long (Holohan and Braghin, ESORICS 2021, section 4).
    """
    return sum((_box_muller(count) for _ in range(4)), np.zeros(count)) / 2


def _box_muller(count: int) -> Array:
    pairs = -(-count // 2)
    words = np.frombuffer(secrets.token_bytes(16 * pairs), np.uint64).reshape(2, pairs) >> np.uint64(11)
    radius = np.sqrt(-2 * np.log((words[0] + 1.0) * 2.0**-53))
    angle = 2 * np.pi * (words[1] * 2.0**-53)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]
