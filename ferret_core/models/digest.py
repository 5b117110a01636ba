"""The model digest: one BLAKE3 over the canonical manifest and the bytes of every tensor."""

from __future__ import annotations

import torch
from blake3 import blake3
from torch import nn

from ferret_core.protocol.digest import canonical_json

MANIFEST_VERSION = 1
_CHUNK_ELEMENTS = 1 << 22


def tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """Every parameter and persistent buffer sorted by name, tied ones once (under their first name)."""
    seen: set[int] = set()
    found: dict[str, torch.Tensor] = {}
    for name, tensor in sorted(model.state_dict(keep_vars=True).items()):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


def manifest(model: nn.Module) -> list[tuple[str, str, tuple[int, ...]]]:
    """(name, dtype, shape) of every tensor: what the digest says about a model besides its numbers."""
    return [(name, str(tensor.dtype), tuple(tensor.shape)) for name, tensor in tensors(model).items()]


def model_digest(model: nn.Module) -> str:
    """64 hexadecimal digits that change with any name, dtype, shape or bit of the model.

    The tensors' little-endian bytes follow the canonical JSON of ``{"version", "tensors"}``.
    """
    hasher = blake3(canonical_json({"version": MANIFEST_VERSION, "tensors": manifest(model)}), max_threads=blake3.AUTO)
    for tensor in tensors(model).values():
        for chunk in tensor.reshape(-1).split(_CHUNK_ELEMENTS):
            hasher.update(chunk.cpu().contiguous().view(torch.uint8).numpy().data)
    return hasher.hexdigest()
