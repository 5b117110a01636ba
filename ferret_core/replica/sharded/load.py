"""Loading of a model into shards: each process reads its own rows of the files.

The model is built without memory for its parameters, sharded, and filled from the mapped safetensors files of its
folder: a process reads only its own rows. If the files have other arrays than the model, because the loading library
combines them differently, and for names on the hub, the processes load the whole model one after the other, and each
keeps its rows: there is one whole model at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from ferret_core.distributed.process_group import ProcessGroup
from ferret_core.distributed.sharded_tensor import held, is_shard, local
from ferret_core.models.load import LoadedModel, load, skeleton
from ferret_core.models.safetensors_map import arrays, tensors
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec
from ferret_core.replica.sharded.shard import cut, require_one_model


def load_sharded(spec: ModelSpec, team: ProcessGroup, *, anywhere: bool = False) -> LoadedModel:
    """Loads the model of ``spec`` in shards on the team's device, in evaluation mode, and its tokenizer. Collective.

    Raises the errors of :func:`ferret_core.models.load.load`, :func:`ferret_core.replica.sharded.shard.cut` and
    :func:`ferret_core.replica.sharded.shard.require_one_model`.
    """
    empty = skeleton(spec, anywhere=anywhere)
    stored = {} if empty is None else _stored(Path(spec.source).expanduser())
    if empty is not None and _is_stored_so(empty.model, stored):
        loaded = empty
        cut(loaded.model, team)
        _take_memory(loaded.model, team.device)
        _fill(loaded.model, stored)
    else:
        loaded = _in_turn(spec, team, anywhere)
    require_one_model(loaded.model, team)
    return loaded


def _in_turn(spec: ModelSpec, team: ProcessGroup, anywhere: bool) -> LoadedModel:
    loaded: LoadedModel | None = None
    for rank in range(team.size):
        if rank == team.rank:
            loaded = load(spec, anywhere=anywhere)
            cut(loaded.model, team)
            _move_buffers(loaded.model, team.device)
        team.numbers(rank)  # waits for all
    assert loaded is not None
    return loaded


def _stored(folder: Path) -> Mapping[str, Tensor]:
    """Returns every array in the folder's weights, mapped; empty if they have no names, or unsupported types."""
    try:
        return tensors(folder, arrays(folder))
    except FerretError:
        return {}


def _is_stored_so(model: nn.Module, stored: Mapping[str, Tensor]) -> bool:
    """True if the files have each parameter, tied ones once, by its own name and shape, and nothing else."""
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    rest = set(model.state_dict()) - {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return not rest and shapes == {name: array.shape for name, array in stored.items()}


def _take_memory(model: nn.Module, device: torch.device) -> None:
    """Allocates uninitialised memory for parameters on the meta device; buffers keep theirs."""

    def taken(tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(tensor, device=device) if tensor.is_meta else tensor.to(device)

    model._apply(taken)


def _move_buffers(model: nn.Module, device: torch.device) -> None:
    def moved(tensor: torch.Tensor) -> torch.Tensor:
        return tensor if is_shard(tensor) else tensor.to(device)

    model._apply(moved)


@torch.no_grad()
def _fill(model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Copies each parameter's rows from its array."""
    for name, parameter in model.named_parameters():
        part = held(parameter)
        local(parameter).copy_(stored[name].view(-1)[part.begin : part.end])
