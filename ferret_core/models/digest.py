"""The model digest: one BLAKE3 over the canonical manifest and the bytes of every tensor, hashed in host memory while a
GPU copies the next ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

import torch
from blake3 import blake3
from torch import Tensor, nn

from ferret_core.distributed.process_group import current
from ferret_core.distributed.sharded_tensor import gathered, is_shard
from ferret_core.protocol.digest import canonical_json

CHUNK = 1 << 25
"""Bytes; enough for all cores to hash a part of it."""
MANIFEST_VERSION = 1
_CHUNK_ELEMENTS = 1 << 22


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


def tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Returns every parameter and persistent buffer sorted by name, tied ones once (under their first name)."""
    seen: set[int] = set()
    found: dict[str, torch.Tensor] = {}
    for name, tensor in sorted(model.state_dict(keep_vars=True).items()):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor
    return found


def manifest(model: nn.Module) -> list[tuple[str, str, tuple[int, ...]]]:
    """Returns (name, dtype, shape) of every tensor: all that the digest covers except the numbers."""
    return _manifest(tensors(model))


def model_digest(model: nn.Module, frozen: str | None = None, files: str = "") -> str:
    """Returns 64 hexadecimal digits that change with any name, dtype, shape or bit of the model, and with any byte of
    the files that define it.

    The tensors' little-endian bytes follow the canonical JSON of ``{"version", "tensors"}``. Frozen parameters are
    replaced by their own digest, computed in the same way, as the member ``frozen`` of that JSON. Passing the result of
    :func:`frozen_weights_digest` saves reading a base model below adapters again in every round. ``files``, the digest
    by :func:`ferret_core.models.definition.digest`, is the member of that name; it is absent for a model that was not
    read from files.
    """
    if frozen is None:
        frozen = frozen_weights_digest(model)
    rest = {name: tensor for name, tensor in tensors(model).items() if not _is_frozen(tensor)}
    more = {"frozen": frozen, "files": files}
    return _digest(rest, {name: value for name, value in more.items() if value})


def frozen_weights_digest(model: nn.Module) -> str:
    """Returns the digest of the frozen parameters, by name; empty for a model without frozen ones."""
    frozen = {name: tensor for name, tensor in tensors(model).items() if _is_frozen(tensor)}
    return _digest(frozen, {}) if frozen else ""


def _is_frozen(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, nn.Parameter) and not tensor.requires_grad


def _digest(tensors: Mapping[str, torch.Tensor], more: Mapping[str, str]) -> str:
    header = canonical_json({"version": MANIFEST_VERSION, "tensors": _manifest(tensors), **more})
    hasher = blake3(header, max_threads=blake3.AUTO)
    if any(map(is_shard, tensors.values())):
        for chunk in chain.from_iterable(map(_gathered, tensors.values())):
            hasher.update(chunk.cpu().contiguous().view(torch.uint8).numpy().data)
        return _of_first(hasher.hexdigest())
    for chunk in host_bytes(tensors.values()):
        hasher.update(chunk.numpy().data)
    return hasher.hexdigest()


def _gathered(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yields the tensor's elements in order, in stretches; of shards only on the team's first process."""
    if not is_shard(tensor):
        yield from tensor.detach().reshape(-1).split(_CHUNK_ELEMENTS)
        return
    for first in range(0, tensor.numel(), _CHUNK_ELEMENTS):
        chunk = gathered(tensor, 0, first, min(first + _CHUNK_ELEMENTS, tensor.numel()))
        if chunk is not None:
            yield chunk


def _of_first(digest: str) -> str:
    """Returns the digest of the team's first process, the only one that has all elements."""
    team = current()
    assert team is not None
    return team.texts(digest)[0]


def _manifest(tensors: Mapping[str, torch.Tensor]) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(name, str(tensor.dtype), tuple(tensor.shape)) for name, tensor in tensors.items()]
