"""The canonical order of a model's parameters: the order of blocks, of digests and of dense updates."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn

from ferret_core.distributed.process_group import require
from ferret_core.distributed.sharded_tensor import copied, is_sharded, local
from ferret_core.protocol.errors import FerretError
from ferret_core.system.device import free_device_bytes

STRETCH = 1 << 20
"""Elements; their fp64 copy takes 8 MiB."""
HALF = (torch.bfloat16, torch.float16)
ROOMY = 5
"""Copies for weights, gradients, an optimizer's two moments, and activations."""


def chunks(tensor: Tensor) -> tuple[Tensor, ...]:
    """Splits ``tensor`` into vectors of at most 2²⁰ elements; on a GPU, which makes no copy, into one."""
    flat = tensor.detach().reshape(-1)
    return flat.split(STRETCH) if flat.device.type == "cpu" else (flat,)


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Returns floating-point parameters with a gradient, sorted by name, tied ones once (under their first name)."""
    named = sorted(model.named_parameters(remove_duplicate=False))
    found: dict[int, str] = {}
    for name, parameter in named:
        if parameter.requires_grad and parameter.is_floating_point():
            found.setdefault(id(parameter), name)
    first = set(found.values())
    parameters = {name: parameter for name, parameter in named if name in first}
    if not parameters:
        raise FerretError("model.invalid", f"{type(model).__name__} has no trainable floating-point parameter")
    return parameters


def shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """Returns the trainable parameters' shapes in canonical order."""
    return {name: tuple(parameter.shape) for name, parameter in trainable(model).items()}


def working_copy(model: nn.Module, pure: bool = False) -> AbstractContextManager[dict[str, torch.Tensor]]:
    """Puts ``model`` on copies of its weights, for training within a ``with`` block; yields the trainable originals.

    The copies are fp32, for any type of the model: in half precision an optimizer's small steps would be rounded away.
    ``pure`` copies have the model's own types, for training that handles rounding itself. If the trainable weights are
    of a half type, frozen ones are converted too, so that types match, and else stay in place; buffers are copied.
    Afterwards the model has its original values, bit for bit.

    For a model on a GPU the originals, including the yielded ones, are in host memory meanwhile, unless the device has
    room for much more than training can need: the transfer takes longer than a step. Shards are copied on their device.
    """
    if is_sharded(model):
        return _on_own_shards(model)
    return _on_copies(model, _crowded(model, next(model.parameters()).device, pure), pure)


def _crowded(model: nn.Module, device: torch.device, pure: bool) -> bool:
    """True if a GPU has no room for ``ROOMY`` copies in addition to the model."""
    if device.type != "cuda":
        return device.type != "cpu"
    sizes = (weight.nbytes if pure else torch.float32.itemsize * weight.numel() for weight in model.parameters())
    return free_device_bytes(device) < ROOMY * sum(sizes)


@contextmanager
def _on_copies(model: nn.Module, originals_on_host: bool, pure: bool = False) -> Generator[dict[str, torch.Tensor]]:
    tuned = trainable(model)
    half = not pure and any(parameter.dtype in HALF for parameter in tuned.values())
    own: dict[torch.Tensor, torch.Tensor] = {}
    try:
        for tensor in (*model.parameters(), *model.buffers()):
            if not _stays(tensor, half):
                own[tensor] = tensor.data.to("cpu", copy=True) if originals_on_host else tensor.data
                tensor.data = _to_train(tensor, half, in_place=originals_on_host)
        yield {name: own[parameter] for name, parameter in tuned.items()}
    finally:
        for tensor, data in own.items():
            tensor.data = data.to(tensor.device)


@contextmanager
def _on_own_shards(model: nn.Module) -> Generator[dict[str, torch.Tensor]]:
    """Does the same for a sharded model, which is fp32: each process keeps a copy of its shards."""
    own = {name: copied(parameter) for name, parameter in trainable(model).items()}
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield own
    finally:
        for name, parameter in trainable(model).items():
            local(parameter).copy_(local(own[name]))
        for buffer, before in buffers:
            buffer.copy_(before)


def _stays(tensor: torch.Tensor, half: bool) -> bool:
    frozen = isinstance(tensor, nn.Parameter) and not tensor.requires_grad
    return frozen and not (half and tensor.dtype in HALF)


def _to_train(tensor: torch.Tensor, half: bool, in_place: bool) -> torch.Tensor:
    if half and tensor.dtype in HALF:
        return tensor.data.float()
    return tensor.data if in_place else tensor.data.clone()


@torch.no_grad()
def weights_norm(model: nn.Module) -> float:
    """Returns the L2 norm of all trainable weights, in fp64; with shards the sum has another order."""
    weights = trainable(model).values()
    parts = (part for weight in weights for part in chunks(local(weight)))
    whole = math.hypot(*(float(torch.linalg.vector_norm(part, dtype=torch.float64)) for part in parts))
    return math.hypot(*require().numbers(whole)) if is_sharded(model) else whole


@torch.no_grad()
def finite(model: nn.Module) -> bool:
    """True if every trainable weight is finite."""
    parts = (part for parameter in trainable(model).values() for part in chunks(local(parameter)))
    here = all(bool(torch.isfinite(part).all()) for part in parts)
    return all(require().numbers(float(here))) if is_sharded(model) else here


@contextmanager
def inference(model: nn.Module) -> Generator[None]:
    """Switches to evaluation mode (no dropout) without gradients; restores the mode afterwards."""
    mode = model.training
    # Buffers for gathered shards are reused in training, where tensors of inference mode are not allowed.
    without_gradients = torch.no_grad() if is_sharded(model) else torch.inference_mode()
    model.eval()
    try:
        with without_gradients:
            yield
    finally:
        model.train(mode)
