"""Running out of memory, on a GPU or in the machine, is one typed error."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch

from ferret_core.protocol.errors import FerretError

REMEDY = "set activation_checkpointing, shorten the examples, or use a smaller model or a larger device"
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""What torch says, in a plain ``RuntimeError``, where it is not its own allocator for GPUs that has no more."""


@contextmanager
def memory_checked(remedy: str = REMEDY) -> Generator[None]:
    """Where nothing can be made smaller, running out of memory is ``memory.exhausted``, with what would help."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if is_out_of_memory(error):
            raise exhausted(error, remedy) from error
        raise


def is_out_of_memory(error: Exception) -> bool:
    """Whether an allocator had no more, on a GPU or in the machine's own memory."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(sign in str(error) for sign in _OUT_OF_MEMORY)


def exhausted(error: Exception, remedy: str) -> FerretError:
    """``memory.exhausted`` with what the allocator said and what would help."""
    said = str(error).partition("\n")[0].rstrip(". ") or type(error).__name__
    return FerretError("memory.exhausted", f"{said}: {remedy}")


def free_device_bytes(device: torch.device) -> int:
    """What can still be allocated on a GPU, torch's own unused reserve included."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused
