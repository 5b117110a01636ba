"""Loads a model into shards: each process reads its own rows of the files.

The model is built without memory for its parameters, cut up, and filled from the safetensors files of its folder,
which are mapped: what a process does not hold it does not read. Where the files have other arrays than the model,
because the loading library puts them together in another way, and for names on the hub, the processes load the whole
model one after the other, and each keeps its rows: there is one whole model at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ferret_core.models.load import LoadedModel, load, skeleton
from ferret_core.protocol.spec import ModelSpec
from ferret_core.sharded.model import cut, require_one_model
from ferret_core.team.group import Team
from ferret_core.team.shards import held, is_shard, local

Slices = Mapping[str, Any]
"""Slices of safetensors by the name of their array: shapes at once, numbers when asked for."""


def load_sharded(spec: ModelSpec, team: Team, *, anywhere: bool = False) -> LoadedModel:
    """The model of ``spec`` in shards on the team's device, in evaluation mode, and its tokenizer. Collective.

    Raises as :func:`ferret_core.models.load.load`, :func:`ferret_core.sharded.model.cut` and
    :func:`ferret_core.sharded.model.require_one_model`.
    """
    empty = skeleton(spec, anywhere=anywhere)
    slices = {} if empty is None else _slices(Path(spec.source).expanduser())
    if empty is not None and _is_stored_so(empty.model, slices):
        loaded = empty
        cut(loaded.model, team)
        _take_memory(loaded.model, team.device)
        _fill(loaded.model, slices)
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


def _slices(folder: Path) -> dict[str, Any]:
    """Of every array in the folder's weights; none where two files have one of the same name."""
    from safetensors import safe_open

    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.safetensors")):
        file: Any = safe_open(path, "pt")
        for name in file.keys():  # noqa: SIM118
            if name in found:
                return {}
            found[name] = file.get_slice(name)
    return found


def _is_stored_so(model: nn.Module, slices: Slices) -> bool:
    """Whether the files have each parameter, tied ones once, by its own name and shape, and nothing else."""
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    rest = set(model.state_dict()) - {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return not rest and shapes == {name: tuple(part.get_shape()) for name, part in slices.items()}


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
def _fill(model: nn.Module, slices: Slices) -> None:
    """Each parameter's rows from its array."""
    for name, parameter in model.named_parameters():
        part, width = held(parameter), parameter.numel() // parameter.shape[0]
        if part.length:
            rows: torch.Tensor = slices[name][part.begin // width : part.end // width]
            local(parameter).copy_(rows.reshape(-1))
