"""Privacy of a contribution: withheld metrics, and the Gaussian mechanism.

Everything in a contribution is computed from one vector (coordinates, an update, slopes). Clipping that vector to L2
norm S and adding Gaussian noise of standard deviation σ to each of its entries, before any quantisation or selection by
size, makes the contribution as a whole differentially private (Dwork and Roth 2014, appendix A): later steps see only
the noised vector. Any two datasets give vectors that are at most 2S apart, so this protects all of the participant's
examples together, not only one of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array

CHUNK = 1 << 20
"""Entries that get noise at a time: the additional memory does not grow with the model."""
UNSAID = 1
"""Reported number of examples if the true number is withheld."""


class ReleasePolicy(NamedTuple):
    """``metrics``: names to report, None for all; ``examples``: True to report their number; ``protect``: transform of
    the vector that a contribution is made of."""

    metrics: frozenset[str] | None = None
    examples: bool = True
    protect: Callable[[Array], Array] | None = None

    def reports(self, name: str) -> bool:
        return self.metrics is None or name in self.metrics

    def reported(self, metrics: Mapping[str, float]) -> dict[str, float]:
        return {name: value for name, value in metrics.items() if self.reports(name)}

    def timed(self, seconds: float) -> float:
        """Returns the seconds of training to report; 0 if the number of examples is withheld."""
        return seconds if self.examples else 0.0

    def counted(self, examples: int) -> int:
        return examples if self.examples else UNSAID


class Gaussian:
    """Clips a vector to L2 norm ``clip`` and adds noise of standard deviation ``noise`` · ``clip`` to its entries.

    ``uses`` counts the vectors, so that the sender can verify that exactly one was protected.
    """

    def __init__(self, clip: float, noise: float) -> None:
        self._clip = clip
        self._noise = noise
        self.uses = 0
        self.norm = 0.0
        """Norm of the last vector before clipping; it is never sent."""

    def __call__(self, vector: Array) -> Array:
        """Returns fp32, in the shape of ``vector``; raises ``training.non_finite`` if its norm is not finite."""
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
    """Draws standard normal numbers, fp64 (count,), from the system's entropy, independent of the server's seeds.

    Each is the sum of four Box–Muller draws over 2. The last bits of a single one could reveal the value it was added
    to (Mironov, CCS 2012); with four this takes too long (Holohan and Braghin, ESORICS 2021, section 4).
    """
    return sum((_box_muller(count) for _ in range(4)), np.zeros(count)) / 2


def _box_muller(count: int) -> Array:
    pairs = -(-count // 2)
    words = np.frombuffer(secrets.token_bytes(16 * pairs), np.uint64).reshape(2, pairs) >> np.uint64(11)
    radius = np.sqrt(-2 * np.log((words[0] + 1.0) * 2.0**-53))
    angle = 2 * np.pi * (words[1] * 2.0**-53)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]
