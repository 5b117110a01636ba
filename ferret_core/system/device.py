"""Device of models and training: a GPU if there is one, unless ``FERRET_DEVICE`` selects another. Running out of its
memory, or of the machine's, is one typed error."""

from __future__ import annotations

import math
import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from time import perf_counter

import torch
from torch import nn

from ferret_core.distributed.sharded_tensor import is_sharded
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.formatting import size

REMEDY = "set activation_checkpointing, shorten the examples, or use a smaller model or a larger device"
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""Messages of torch's plain ``RuntimeError`` when an allocator other than its own for GPUs runs out of memory."""
SETTING = "FERRET_DEVICE"
DEVICES = ("auto", "cpu", "cuda")
BF16_INSTRUCTIONS = ("amx_bf16", "avx512_bf16", "bf16")
"""Names of a processor's capabilities, as torch reports them; the last is ARM's."""
LEAST_GAIN = 1.5
"""Speed of bf16 products relative to fp32, below which training gains nothing: it also converts weights."""
PRODUCT = (256, 576, 1536)
"""Tokens, inputs and outputs of the timed product: a layer of a model with 135 M weights."""
REPEATS = 5
"""Runs of a timed product; the shortest counts, because the first also warms up."""
HALF = ("bfloat16", "pure_bfloat16")
"""Values of ``algorithm.local.precision`` that compute in bf16."""


@contextmanager
def memory_checked(remedy: str = REMEDY) -> Generator[None]:
    """Converts running out of memory in the block to ``memory.exhausted`` with ``remedy``."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise exhausted(error, remedy) from error
        raise


def is_out_of_memory(error: Exception) -> bool:
    """True if an allocator ran out of memory, on a GPU or in the machine."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(sign in str(error) for sign in _OUT_OF_MEMORY)


def exhausted(error: Exception, remedy: str) -> FerretError:
    """Creates ``memory.exhausted`` with the allocator's message and a remedy."""
    said = str(error).partition("\n")[0].rstrip(". ") or type(error).__name__
    return FerretError("memory.exhausted", f"{said}: {remedy}")


def free_device_bytes(device: torch.device) -> int:
    """Returns the bytes that can still be allocated on a GPU, including torch's own unused reserve."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


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


def fast_bfloat16(device: torch.device) -> bool:
    """True if ``device`` trains faster in bf16: a GPU since NVIDIA's Ampere or AMD's CDNA, and a processor that is
    ``LEAST_GAIN`` times as fast at bf16 products as at fp32 products.

    AMX makes them several times as fast; AVX512-BF16 alone can make them slower. Times two small products, once.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if not any(torch.cpu.get_capabilities().get(name, False) for name in BF16_INSTRUCTIONS):
        return False
    return bfloat16_gain() >= LEAST_GAIN


@cache
def bfloat16_gain() -> float:
    """Returns the seconds of a product in fp32 over those in bf16, on one thread of the processor."""
    tokens, inputs, outputs = PRODUCT
    seconds = {torch.float32: math.inf, torch.bfloat16: math.inf}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for each other on a busy machine would hide the difference
    try:
        for dtype in REPEATS * [*seconds]:
            left, right = torch.ones(tokens, inputs, dtype=dtype), torch.ones(inputs, outputs, dtype=dtype)
            begin = perf_counter()
            left @ right
            seconds[dtype] = min(seconds[dtype], perf_counter() - begin)
    finally:
        torch.set_num_threads(threads)
    return seconds[torch.float32] / seconds[torch.bfloat16]


def require_bfloat16(device: torch.device, precision: str) -> None:
    """Raises ``training.unsupported`` for a half ``precision`` on a GPU that cannot compute in bf16 at all. Other
    hardware without instructions for it emulates them, more slowly."""
    if precision in HALF and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        message = (
            f"this GPU, {torch.cuda.get_device_name(device)}, has no bf16: use 'float32', or set {SETTING}=cpu here"
        )
        raise FerretError.of_field("training.unsupported", "algorithm.local.precision", precision, message)


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
