"""Loads a model into shards: each process reads its own rows of the files.

The model is built without memory for its parameters, cut up, and filled from the safetensors files of its folder,
which are mapped: what a process does not hold it does not read. Where the files have other arrays than the model,
because the loading library puts them together in another way, and for names on the hub, the processes load the whole
model one after the other, and each keeps its rows: there is one whole model at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from ferret_core.models.in_files import is_stored_so, stored_in
from ferret_core.models.load import LoadedModel, load, skeleton
from ferret_core.protocol.spec import ModelSpec
from ferret_core.sharded.model import cut, require_one_model
from ferret_core.team.group import Team
from ferret_core.team.shards import held, is_shard, local


def load_sharded(spec: ModelSpec, team: Team, *, anywhere: bool = False) -> LoadedModel:
    """The model of ``spec`` in shards on the team's device, in evaluation mode, and its tokenizer. Collective.

    Raises as :func:`ferret_core.models.load.load`, :func:`ferret_core.sharded.model.cut` and
    :func:`ferret_core.sharded.model.require_one_model`.
    """
    empty = skeleton(spec, anywhere=anywhere)
    stored = {} if empty is None else stored_in(Path(spec.source).expanduser())
    if empty is not None and is_stored_so(empty.model, stored):
        loaded = empty
        cut(loaded.model, team)
        _take_memory(loaded.model, team.device)
        _fill(loaded.model, stored)
    else:
        loaded = _in_turn(spec, team, anywhere)
    require_one_model(loaded.model, team)
    return loaded


def _in_turn(spec: ModelSpec, team: Team, anywhere: bool) -> LoadedModel:
    loaded: LoadedModel | None = None
    for rank in range(team.size):
        if rank == team.rank:
            loaded = load(spec, anywhere=anywhere)
            cut(loaded.model, team)
            _move_buffers(loaded.model, team.device)
        team.numbers(rank)  # waits for all
    assert loaded is not None
    return loaded


def _take_memory(model: nn.Module, device: torch.device) -> None:
    """Gives parameters on the meta device memory, without numbers in it; buffers keep theirs."""

    def taken(tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(tensor, device=device) if tensor.is_meta else tensor.to(device)

    model._apply(taken)


def _move_buffers(model: nn.Module, device: torch.device) -> None:
    def moved(tensor: torch.Tensor) -> torch.Tensor:
        return tensor if is_shard(tensor) else tensor.to(device)

    model._apply(moved)


@torch.no_grad()
def _fill(model: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Each parameter's rows from its array."""
    for name, parameter in model.named_parameters():
        part = held(parameter)
        local(parameter).copy_(stored[name].view(-1)[part.begin : part.end])
