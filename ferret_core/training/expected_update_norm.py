"""Expected length of a local update: known before training, from the optimizer and its rate.

Optimizers that scale every weight's step by its gradient's size, and normalized and clipped descent, move by about the
rate, for any data. The length of the first step is the optimizer's; the length of T steps grows as a power of T below
one, because steps point in different directions. The powers were measured on LLaMAs of 0.26 to 60 M parameters tuned on
GSM8K (docs/results/size/size.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ferret_core.training.config import LocalConfig

GRADIENT = 10.0
"""Assumed norm of an unbounded gradient, which is unknown before training. On 3 M parameters it was about 30."""
WALK = 0.7
"""Exponent of T in the length of a sum of equally long steps. Momentum aligns them: with β = 0.5 and 0.9 it was
measured as 0.9 and 0.96 over 2 to 10 steps on 0.26 M parameters, as 0.7 and 0.9 on 3 M."""


class Growth(NamedTuple):
    """The RMS per weight of the first step in units of the rate, and its growth exponent in T."""

    first: float
    power: float


PER_WEIGHT = {
    "adam": Growth(1, 0.65),
    "adamw": Growth(1, 0.65),
    "adamax": Growth(1, 0.5),
    "nadam": Growth(1, 0.6),
    "adagrad": Growth(1, 0.4),
    "rmsprop": Growth(10, 0.25),
    "rprop": Growth(1, 1),
    "adadelta": Growth(0.002, 0.85),
    "adafactor": Growth(0.1, 0.8),
}


def expected_length(local: LocalConfig, d: int, examples: int | None = None) -> float:
    """Returns ‖Δ‖ of a participant's update of d weights in round 1, in the units of the weights.

    ``examples``: the participant's number of examples, for epochs.
    """
    steps = local.steps_for(examples)
    if local.optimizer == "normalized":
        return local.learning_rate * steps ** (WALK + (1 - WALK) * local.momentum)
    if local.optimizer in PER_WEIGHT:
        growth = PER_WEIGHT[local.optimizer]
        return math.sqrt(d) * growth.first * local.learning_rate * steps**growth.power
    length, power = (GRADIENT, 1.0) if local.clip_norm is None else (local.clip_norm, WALK)
    return local.learning_rate * length / (1 - local.momentum) * steps**power
