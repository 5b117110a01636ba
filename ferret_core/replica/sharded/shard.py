"""Sharding of a model over the processes of the team, by FSDP2: a layer is whole only while it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from pydantic import TypeAdapter
from torch import nn

from ferret_core.distributed.errors import process_group_failed
from ferret_core.distributed.process_group import ProcessGroup
from ferret_core.distributed.sharded_tensor import ElementRange, local, ranges
from ferret_core.protocol.digest import canonical_json, digest_bytes
from ferret_core.protocol.errors import FerretError

_SIZES = TypeAdapter(list[int])
PLAIN = (torch.float32, torch.bfloat16, torch.float16)


def cut(model: nn.Module, team: ProcessGroup) -> None:
    """Reduces each parameter of ``model`` to this process's rows, in place and on the team's device.

    Parameters on the meta device stay there. Raises ``model.invalid`` for a model that cannot be sharded.
    """
    from torch.distributed.fsdp import fully_shard

    layers = layers_of(model)
    for name, parameter in model.named_parameters():
        require_plain(name, parameter)
    for layer in layers:
        fully_shard(layer, mesh=team.mesh, reshard_after_forward=True)
    # Otherwise parameters outside of layers would stay whole after a forward pass, and be outdated after a move.
    fully_shard(model, mesh=team.mesh, reshard_after_forward=True)


def require_one_model(model: nn.Module, team: ProcessGroup) -> None:
    """Raises ``process_group.failed`` if the processes have sharded different models, or if their shards do not cover
    it. Collective."""
    team.same("model", outline(model))
    require_cover(model, team)


def require_plain(name: str, parameter: nn.Parameter) -> None:
    """Raises ``model.invalid`` for quantised weights, as of bitsandbytes and torchao, and for single numbers."""
    kind = type(parameter.data)
    if parameter.dtype not in PLAIN or kind is not torch.Tensor:
        message = "is quantised, which a team cannot train: use the original model"
        raise FerretError.of_field("model.invalid", name, f"{kind.__name__} of {parameter.dtype}", message)
    if parameter.ndim == 0:
        message = "is a single number, which cannot be cut up: train this model with one process"
        raise FerretError.of_field("model.invalid", name, "()", message)


def layers_of(model: nn.Module) -> list[nn.Module]:
    """Returns the parts of ``model`` that are whole one at a time: the modules that its authors list as not
    splittable."""
    names = set(cast("list[str] | None", getattr(model, "_no_split_modules", None)) or ())
    layers = [module for module in model.modules() if type(module).__name__ in names]
    if not layers:
        message = "has no layers that a team could hold one at a time: train this model with one process"
        raise FerretError.of_field("model.invalid", "model.source", type(model).__name__, message)
    return layers


def outline(model: nn.Module) -> str:
    """Returns the digest of every parameter's name, type and shape."""
    there = [[name, str(each.dtype), list(each.shape)] for name, each in model.named_parameters()]
    return digest_bytes(canonical_json(there))


def require_cover(model: nn.Module, team: ProcessGroup) -> None:
    """Raises ``process_group.failed`` unless the shards of all processes cover each parameter exactly once."""
    parameters = dict(model.named_parameters())
    sizes = team.values([local(parameter).numel() for parameter in parameters.values()], _SIZES)
    for rank, of_rank in enumerate(sizes):
        if len(of_rank) != len(parameters):
            raise process_group_failed(f"process {rank} holds {len(of_rank)} parameters, not {len(parameters)}")
    for number, (name, parameter) in enumerate(parameters.items()):
        check_cover(name, ranges(parameter), [of_rank[number] for of_rank in sizes])


def check_cover(name: str, expected: Sequence[ElementRange], sizes: Sequence[int]) -> None:
    """Raises ``process_group.failed`` unless each process holds the number of elements of the parameter ``name`` in its
    range."""
    for rank, (part, size) in enumerate(zip(expected, sizes, strict=True)):
        if size != part.length:
            raise process_group_failed(f"of {name} process {rank} holds {size} elements, not {part.length}")
