"""Device of models and training: a GPU if there is one, unless ``FERRET_DEVICE`` selects another."""

from __future__ import annotations

import os

import torch
from torch import nn

from ferret_core.distributed.sharded_tensor import is_sharded
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size
from ferret_core.system.out_of_memory import free_device_bytes

SETTING = "FERRET_DEVICE"
DEVICES = ("auto", "cpu", "cuda")


def chosen_device(wanted: str | None = None) -> torch.device:
    """Returns the device ``wanted``, by default the one in the environment.

    Raises ``settings.invalid`` for an unknown name, and for ``cuda`` if torch finds no GPU.
    """
    asked = wanted or os.environ.get(SETTING) or "auto"
    if asked not in DEVICES:
        raise FerretError.of_field("settings.invalid", SETTING, asked, f"choose one of {', '.join(DEVICES)}")
    available = asked != "cpu" and torch.cuda.is_available()
    if asked == "cuda" and not available:
        raise FerretError.of_field("settings.invalid", SETTING, asked, "torch finds no GPU here: choose auto or cpu")
    return torch.device("cuda" if available else "cpu")


def place(model: nn.Module, device: torch.device) -> None:
    """Moves the model to ``device``; raises ``memory.exhausted`` if a GPU has too little room. Shards stay in place."""
    if is_sharded(model):
        return
    if device.type == "cuda":
        require_room(sum(parameter.nbytes for parameter in model.parameters()), free_device_bytes(device))
    model.to(device)


def require_room(needed: int, free: int) -> None:
    """Raises ``memory.exhausted`` unless ``needed`` bytes are ``free`` on the GPU."""
    if needed > free:
        message = f"the model takes {size(needed)} and {size(free)} of the GPU are free: set {SETTING}=cpu"
        raise FerretError("memory.exhausted", f"{message}, use a smaller model, or end other processes on it")
