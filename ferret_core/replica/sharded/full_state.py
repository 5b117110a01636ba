"""Writing of a sharded model as a single process would write it, without ever holding it whole.

The first process receives the parameters one after the other and stores them in a file. The library that writes
checkpoints reads this file as tensors: only the operating system's cache of the file is in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from ferret_core.distributed.process_group import ProcessGroup
from ferret_core.distributed.sharded_tensor import gathered, is_shard

STRETCH = 1 << 22
"""Elements per message."""


@contextmanager
def whole_state(model: nn.Module, team: ProcessGroup, scratch: Path) -> Generator[dict[str, torch.Tensor]]:
    """Yields the model's state by name in a file below ``scratch``, with tied tensors once in memory; empty on all
    processes except the first. Collective."""
    with tempfile.TemporaryDirectory(prefix=".whole-", dir=scratch if team.is_first else None) as folder:
        found: dict[int, torch.Tensor] = {}
        state: dict[str, torch.Tensor] = {}
        for number, (name, tensor) in enumerate(model.state_dict(keep_vars=True).items()):
            if id(tensor) not in found:
                found[id(tensor)] = _whole(tensor, team, Path(folder, str(number)))
            state[name] = found[id(tensor)]
        yield state if team.is_first else {}


def _whole(tensor: torch.Tensor, team: ProcessGroup, file: Path) -> torch.Tensor:
    if not is_shard(tensor):
        return tensor.detach()
    whole = _mapped(tensor, file) if team.is_first else torch.empty(0)
    for first in range(0, tensor.numel(), STRETCH):
        last = min(first + STRETCH, tensor.numel())
        part = gathered(tensor, 0, first, last)
        if part is not None:
            whole.view(-1)[first:last].copy_(part)
    return whole


def _mapped(tensor: torch.Tensor, file: Path) -> torch.Tensor:
    values = torch.from_file(str(file), shared=True, size=tensor.numel(), dtype=tensor.dtype)
    return values.view(tensor.shape)
