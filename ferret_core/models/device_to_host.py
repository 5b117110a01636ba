"""A model's bytes in host memory, in chunks: while one is processed, a GPU copies the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

CHUNK = 1 << 25
"""Bytes; enough for all cores to hash a part of it."""


def host_bytes(tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yields the memory of the tensors in order, as uint8 vectors of at most 32 MiB.

    Each is valid until the next one is requested.
    """
    held = [tensor.detach() for tensor in tensors if tensor.numel()]
    chunks = (chunk for tensor in held for chunk in tensor.reshape(-1).view(torch.uint8).split(CHUNK))
    return prefetch_to_host(chunks) if any(tensor.is_cuda for tensor in held) else chunks


def prefetch_to_host(chunks: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yields copies of ``chunks``, uint8 vectors of at most 32 MiB, in two alternating buffers.

    Copies into new memory, alternating with the hashing, reached only 1 GB/s on an H200.
    """
    buffers: list[Tensor] = []
    coming: tuple[Tensor, Callable[[], None]] | None = None
    for number, chunk in enumerate(chunks):
        if number < 2:
            buffers.append(torch.empty(CHUNK, dtype=torch.uint8, pin_memory=chunk.is_cuda))
        copy = buffers[number % 2][: len(chunk)].copy_(chunk, non_blocking=True)
        begun = copy, _end_of_copies(chunk.device)
        if coming is not None:
            yield _arrived(*coming)
        coming = begun
    if coming is not None:
        yield _arrived(*coming)


def _end_of_copies(device: torch.device) -> Callable[[], None]:
    """Returns a function that waits for all current work of ``device``."""
    if device.type != "cuda":
        return lambda: None
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event.synchronize


def _arrived(copy: Tensor, wait: Callable[[], None]) -> Tensor:
    wait()
    return copy
