"""One typed error for running out of memory, on a GPU or in the machine."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch

from ferret_core.protocol.errors import FerretError

REMEDY = "set activation_checkpointing, shorten the examples, or use a smaller model or a larger device"
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""Messages of torch's plain ``RuntimeError`` when an allocator other than its own for GPUs runs out of memory."""


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
