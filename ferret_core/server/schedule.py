"""The server's learning rate in each round, and the effect of an update's noise under it; needs no torch."""

from __future__ import annotations

import math

from ferret_core.protocol.spec import ServerSpec
from ferret_core.protocol.wire import Array


def server_rate(spec: ServerSpec, round_number: int, rounds: int) -> float:
    """Returns a_r: rises over the warm-up, then follows the schedule from the full rate to 0 after the last round."""
    full = spec.learning_rate
    if round_number <= spec.warmup_rounds:
        return full * round_number / (spec.warmup_rounds + 1)
    left = 1 - (round_number - spec.warmup_rounds - 1) / max(1, rounds - spec.warmup_rounds)
    match spec.schedule:
        case "constant":
            return full
        case "linear":
            return full * left
        case "cosine":
            return full * (1 - math.cos(math.pi * left)) / 2


def noise_step(spec: ServerSpec, noise: Array, rate: float) -> Array:
    """Returns the largest move of each weight by noise of these RMS in an update: momentum applies it 1 / (1 − β)
    times, a running second moment bounds it by the rate.
    """
    return rate * noise / (1 - spec.momentum if spec.optimizer == "sgd" else noise + spec.tau)
