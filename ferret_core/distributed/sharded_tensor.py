"""The local part of a tensor, and collectives that gather its elements.

A shard is a DTensor of FSDP2: the rows of a tensor are cut into as many chunks as there are processes, the first ones
⌈rows / size⌉ long, and process r holds chunk r. Flattened, that is one range of elements.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ferret_core.distributed.process_group import current, require
from ferret_core.protocol.errors import FerretError


class ElementRange(NamedTuple):
    """Elements begin … end − 1 of a flattened tensor."""

    begin: int
    end: int

    def within(self, begin: int, end: int) -> ElementRange:
        """Returns its intersection with ``begin`` … ``end`` − 1; empty ranges have begin = end."""
        first = max(self.begin, begin)
        return ElementRange(first, max(first, min(self.end, end)))

    @property
    def length(self) -> int:
        return self.end - self.begin


def is_shard(tensor: Tensor) -> bool:
    """True if other processes hold the rest of ``tensor``; costs nothing for a single process."""
    if current() is None:
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def is_sharded(model: nn.Module) -> bool:
    """True if the parameters of ``model`` are shards."""
    return current() is not None and any(is_shard(parameter) for parameter in model.parameters())


def ranges(tensor: Tensor) -> list[ElementRange]:
    """Returns the elements of the shard that each process holds, by rank. They cover the tensor."""
    rows, size = tensor.shape[0], require().size
    width, chunk = tensor.numel() // max(rows, 1), -(-rows // size)
    cuts = [min(rank * chunk, rows) * width for rank in range(size + 1)]
    return [ElementRange(begin, end) for begin, end in pairwise(cuts)]


def held(tensor: Tensor) -> ElementRange:
    """Returns the elements that this process holds."""
    return ranges(tensor)[require().rank]


def local(tensor: Tensor) -> Tensor:
    """Returns this process's elements as a vector, in the shard's own memory; any other tensor unchanged."""
    detached = tensor.detach()
    if not is_shard(detached):
        return detached
    from torch.distributed.tensor import DTensor

    assert isinstance(detached, DTensor)
    values = detached.to_local()
    if not values.is_contiguous():
        raise FerretError.of_field("model.invalid", "shard", values.stride(), "is strided: load the model again")
    return values.view(-1)


def like(tensor: Tensor, values: Tensor) -> Tensor:
    """Returns a shard of the shape of the shard ``tensor`` with the local elements ``values``, flat, of any type."""
    from torch.distributed.tensor import DTensor, Shard

    rows = (-1, *tensor.shape[1:]) if values.numel() else (0, *tensor.shape[1:])
    return DTensor.from_local(
        values.view(rows), require().mesh, [Shard(0)], run_check=False, shape=tensor.shape, stride=tensor.stride()
    )


def copied(tensor: Tensor) -> Tensor:
    """Returns a shard with the same numbers in separate memory."""
    return like(tensor, local(tensor).clone())


def gathered(tensor: Tensor, owner: int, begin: int = 0, end: int | None = None) -> Tensor | None:
    """Returns elements ``begin`` … ``end`` − 1 of a shard, flat, on process ``owner``, None on others. Collective."""
    team, stop = require(), tensor.numel() if end is None else end
    own = local(tensor)
    parts = [each.within(begin, stop) for each in ranges(tensor)]
    mine, offset = parts[team.rank], held(tensor).begin
    values = own[mine.begin - offset : mine.end - offset] if mine.length else own[:0]
    if team.rank != owner:
        if mine.length:
            team.send(values, owner)
        return None
    whole = torch.empty(stop - begin, dtype=own.dtype, device=own.device)
    for rank, part in enumerate(parts):
        if not part.length:
            continue
        place = whole[part.begin - begin : part.end - begin]
        if rank == owner:
            place.copy_(values)
        else:
            team.receive(place, rank)
    return whole


def everywhere(tensor: Tensor) -> Tensor:
    """Returns all elements of a shard, flat, on every process. Collective; for tensors that are sent whole anyway."""
    team = require()
    whole = gathered(tensor, 0)
    if whole is None:
        own = local(tensor)
        whole = torch.empty(tensor.numel(), dtype=own.dtype, device=own.device)
    return team.told(whole, 0)


def spread(whole: Tensor | None, tensor: Tensor, owner: int) -> None:
    """Writes the values of ``whole``, flat, on ``owner`` into every process's shard. Collective."""
    team, own = require(), local(tensor)
    if team.rank != owner:
        if own.numel():
            team.receive(own, owner)
        return
    assert whole is not None
    for rank, part in enumerate(ranges(tensor)):
        if not part.length:
            continue
        values = whole[part.begin : part.end]
        if rank == owner:
            own.copy_(values)
        else:
            team.send(values, rank)
