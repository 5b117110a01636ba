"""Memory of a local update in addition to its weights, from its options alone; torch is not loaded."""

from __future__ import annotations

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size
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
"""Maximum number of copies of the weights that an optimizer keeps."""
FP32 = 4
BF16 = 2
STEP = 4
"""fp32 copies of one parameter during a step of ``pure_bfloat16``, including its random bits."""
PLAIN = 'optimizer = "normalized"'
IN_BACKWARD = f"{PLAIN} with optimizer_in_backward = true"
PURE = f'{IN_BACKWARD} and precision = "pure_bfloat16" (with model.dtype = "bfloat16")'
WAYS = {
    PLAIN: LocalConfig(optimizer="normalized"),
    IN_BACKWARD: LocalConfig(optimizer="normalized", accumulation=1, optimizer_in_backward=True),
    PURE: LocalConfig(optimizer="normalized", accumulation=1, optimizer_in_backward=True, precision="pure_bfloat16"),
}
OTHERWISE = "use a smaller model, an algorithm that trains adapters, or a larger GPU"


def check_room(local: LocalConfig, elements: int, tuned: int, largest: int, room: int) -> None:
    """Raises ``memory.exhausted`` if weights, gradients and optimizer state alone take more than ``room`` bytes.

    Of the model's ``elements``, ``tuned`` are trained, ``largest`` of them in one tensor. The error names options that
    would fit.
    """
    needed = local_bytes(local, elements, tuned, largest)
    if needed <= room:
        return
    ways = {name: local_bytes(way, elements, tuned, largest) for name, way in WAYS.items()}
    fits = next((f"{way} needs {size(least)}" for way, least in ways.items() if least <= room), OTHERWISE)
    message = f"its local update takes at least {size(needed)} on a GPU that has {size(room)}: {fits}"
    raise FerretError.of_field("memory.exhausted", "algorithm.local.optimizer", local.optimizer, message)


def local_bytes(local: LocalConfig, elements: int, tuned: int, largest: int) -> int:
    """Returns the maximum bytes of the trained copy, its gradients and the optimizer's state, without activations."""
    if local.pure:
        return BF16 * (elements + largest) + STEP * FP32 * largest
    return FP32 * (elements + _beside_weights(local, tuned, largest))


def _beside_weights(local: LocalConfig, tuned: int, largest: int) -> int:
    """Returns the number of elements of gradients and optimizer state."""
    gradients = largest if local.optimizer_in_backward else tuned
    return gradients + (STATE.get(local.optimizer, 0) + (local.momentum > 0)) * tuned
