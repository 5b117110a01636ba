"""Memory of training, evaluation and aggregation, from a model's sizes and the options alone; torch is not loaded.

Activations are the tensors that the layers of a LLaMA save for the backward pass, counted in transformers 5; other
decoders save about as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferret_core.models.architecture import LayerSizes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size
from ferret_core.training.config import LocalConfig
from ferret_core.training.optimizer_options import WITH_MOMENTUM

PROCESS = 640 * 10**6
"""Resident bytes of Python with torch, transformers and compiled kernels, without a model."""
STATE = {
    "adam": 2,
    "adamw": 2,
    "nadam": 2,
    "radam": 2,
    "adamax": 2,
    "rmsprop": 1,
    "adagrad": 1,
    "adadelta": 2,
    "asgd": 1,
    "rprop": 2,
}
"""Copies of the weights that an optimizer keeps, without momentum and options."""
MORE_STATE = ("amsgrad", "centered", "momentum")
"""Options with which an optimizer keeps another copy each."""
FP32 = 4
BF16 = 2
STEP = 4
"""fp32 copies of one parameter during a step of ``pure_bfloat16``, including its random bits."""
KEPT = {"bfloat16": 14, "pure_bfloat16": 4}
"""Bytes of fp32 numbers per token, layer and hidden unit that half precision keeps, in its norms above all."""
CHUNKS = 3
"""Chunks of logits that the loss holds at a time: logits, their logarithms and their gradient."""
CHUNK = 2**24
"""Logits per chunk, 64 MiB in fp32."""
PLAIN = 'optimizer = "normalized"'
IN_BACKWARD = f"{PLAIN} with optimizer_in_backward = true"
PURE = f'{IN_BACKWARD} and precision = "pure_bfloat16" (with model.dtype = "bfloat16")'
WAYS = {
    PLAIN: LocalConfig(optimizer="normalized"),
    IN_BACKWARD: LocalConfig(optimizer="normalized", accumulation=1, optimizer_in_backward=True),
    PURE: LocalConfig(optimizer="normalized", accumulation=1, optimizer_in_backward=True, precision="pure_bfloat16"),
}
OTHERWISE = "use a smaller model, an algorithm that trains adapters, or a larger device"


class Counts(NamedTuple):
    """Numbers of a model's elements: all, the ``tuned`` ones, and the elements of the ``largest`` tuned tensor.

    ``sent`` counts the elements of an update that is sent as a dense vector or computed from one. ``kept`` counts those
    of vectors that the algorithm holds on the host meanwhile.
    """

    elements: int
    tuned: int
    largest: int
    sent: int = 0
    kept: int = 0


def fit_room(
    local: LocalConfig, needed: Callable[[LocalConfig], int], room: int, elsewhere: Sequence[str] = ()
) -> LocalConfig:
    """Returns ``local`` if a local update fits into ``room`` bytes, or else the same steps in the backward pass.

    ``needed`` returns the least bytes for local options, e.g. :func:`local_bytes` or :func:`least_bytes`. ``elsewhere``
    has the settings outside ``local`` to change so that whole gradients are not needed.

    Raises ``memory.exhausted`` if neither fits, or if only steps in the backward pass do and whole gradients are
    needed; names the options that would fit.
    """
    if (least := needed(local)) <= room:
        return local
    changed = local.in_backward()
    wrong = [*changed.needs_whole_gradients(), *elsewhere]
    if (less := needed(changed.model_copy(update={"momentum": 0.0}))) <= room and not wrong:
        return changed
    ways = {name: needed(way) for name, way in WAYS.items()}
    fits = next((f"{way} needs {size(bytes_)}" for way, bytes_ in ways.items() if bytes_ <= room), OTHERWISE)
    if less <= room and local.optimizer in WITH_MOMENTUM:
        fits = f"steps in the backward pass need {size(less)}, and {', '.join(wrong)}"
    message = f"its local update takes at least {size(least)} on a device that has {size(room)}: {fits}"
    raise FerretError.of_field("memory.exhausted", "algorithm.local.optimizer", local.optimizer, message)


def local_bytes(local: LocalConfig, counts: Counts) -> int:
    """Returns the maximum bytes of the trained copy, its gradients and the optimizer's state, without activations."""
    if local.pure:
        return BF16 * (counts.elements + counts.largest) + STEP * FP32 * counts.largest
    return FP32 * (counts.elements + _beside_weights(local, counts))


def _beside_weights(local: LocalConfig, counts: Counts) -> int:
    """Returns the number of elements of gradients and optimizer state."""
    gradients = counts.largest if local.optimizer_in_backward else counts.tuned
    more = (local.momentum > 0) + sum(bool(local.options.get(name)) for name in MORE_STATE)
    return gradients + (STATE.get(local.optimizer, 0) + more) * counts.tuned


def training_bytes(local: LocalConfig, counts: Counts, sizes: LayerSizes, tokens: int) -> int:
    """Returns the peak of a process with a local update, ``tokens`` tokens in a pass.

    A copy of the round's model is held throughout; activations and the loss are held together with gradients. Pure bf16
    adds up the steps of a dense update meanwhile.
    """
    original = BF16 * counts.tuned + FP32 * counts.sent if local.pure else FP32 * counts.tuned
    held = PROCESS + original + FP32 * counts.kept
    return held + local_bytes(local, counts) + activation_bytes(local, sizes, tokens)


def least_bytes(local: LocalConfig, counts: Counts, sizes: LayerSizes, longest: int) -> int:
    """Returns :func:`training_bytes` with one sequence of ``longest`` tokens in a pass, its activations checkpointed.

    A pass with steps in it has the whole batch.
    """
    sequences = local.batch_size if local.optimizer_in_backward else 1
    least = local.model_copy(update={"activation_checkpointing": True})
    return training_bytes(least, counts, sizes, sequences * longest)


def activation_bytes(local: LocalConfig, sizes: LayerSizes, tokens: int) -> int:
    """Returns the bytes that the layers and the loss hold for the backward pass of ``tokens`` tokens."""
    values = 8 * sizes.hidden + 4 * sizes.mlp + 2 * sizes.key_value
    layer = BF16 * values + KEPT[local.precision] * sizes.hidden if local.half else FP32 * values
    inputs = (BF16 if local.half else FP32) * sizes.hidden
    held = sizes.layers * inputs + layer if local.activation_checkpointing else sizes.layers * layer
    cast = BF16 * sizes.layers * sizes.layer_weights if local.precision == "bfloat16" else 0
    return tokens * held + cast + loss_bytes(sizes, tokens)


def loss_bytes(sizes: LayerSizes, tokens: int) -> int:
    """Returns the bytes of the logits that the loss of ``tokens`` response tokens holds at a time."""
    return CHUNKS * FP32 * min(CHUNK, tokens * sizes.vocabulary)


def evaluation_bytes(sizes: LayerSizes, weights: int, tokens: int) -> int:
    """Returns the peak of a process that evaluates a model of ``weights`` bytes: one layer's tensors and the loss."""
    return PROCESS + weights + FP32 * tokens * (6 * sizes.hidden + 3 * sizes.mlp) + loss_bytes(sizes, tokens)
