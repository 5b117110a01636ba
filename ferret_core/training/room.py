"""Check, before the first step, that a GPU has room for a local update."""

from __future__ import annotations

from torch import nn

from ferret_core.distributed.sharded_tensor import is_sharded
from ferret_core.models.parameters import trainable
from ferret_core.system.out_of_memory import free_device_bytes
from ferret_core.training.config import LocalConfig
from ferret_core.training.footprint import check_room
from ferret_core.training.loss import device_of


def require_room(model: nn.Module, local: LocalConfig) -> None:
    """Calls :func:`ferret_core.training.footprint.check_room` with the room on the model's GPU.

    It does nothing on a CPU, where memory is shared, nor for a team, which loads and frees its layers during training.
    """
    device = device_of(model)
    if device.type != "cuda" or is_sharded(model):
        return
    parameters, tuned = list(model.parameters()), [weight.numel() for weight in trainable(model).values()]
    # The model's current memory is free again when its copy is trained.
    room = free_device_bytes(device) + sum(parameter.nbytes for parameter in parameters)
    check_room(local, sum(parameter.numel() for parameter in parameters), sum(tuned), max(tuned), room)
