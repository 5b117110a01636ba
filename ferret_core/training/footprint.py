"""What a local update holds in memory beside its weights, from its options alone; no torch is loaded."""

from __future__ import annotations

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.quantities import size
from ferret_core.training.config import LocalConfig

STATE = {
    "adam": 2,
    "adamw": 2,
    "nadam": 2,
    "radam": 2,
    "adamax": 2,
    "muon": 2,
    "rmsprop": 1,
    "adagrad": 1,
    "adadelta": 2,
    "rprop": 2,
}
"""Copies of the weights that an optimizer keeps at most."""
FP32 = 4
PLAIN = 'optimizer = "normalized"'
LEAST = f"{PLAIN} with in_backward = true"
OTHERWISE = "use a smaller model, an algorithm that trains adapters, or a larger GPU"


def check_room(local: LocalConfig, elements: int, tuned: int, largest: int, room: int) -> None:
    """Raises ``memory.exhausted`` where weights, gradients and optimizer state alone take more than ``room`` bytes.

    Of the model's ``elements``, ``tuned`` are trained, ``largest`` of them in one tensor. The error names the options
    that would fit.
    """
    needed = FP32 * (elements + beside_weights(local, tuned, largest))
    if needed <= room:
        return
    ways = {PLAIN: FP32 * (elements + tuned), LEAST: FP32 * (elements + largest)}
    fits = next((f"{way} needs {size(least)}" for way, least in ways.items() if least <= room), OTHERWISE)
    message = f"its local update takes at least {size(needed)} on a GPU that has {size(room)}: {fits}"
    raise FerretError.of_field("memory.exhausted", "algorithm.local.optimizer", local.optimizer, message)


def beside_weights(local: LocalConfig, tuned: int, largest: int) -> int:
    """How many numbers gradients and the optimizer's state are, at most; activations come on top."""
    gradients = largest if local.in_backward else tuned
    return gradients + (STATE.get(local.optimizer, 0) + (local.momentum > 0)) * tuned
