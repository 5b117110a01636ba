"""A model in shards: each process reads its own rows of the files, and the first one writes the whole model.

The model is built without memory for its parameters, sharded, and filled from the mapped safetensors files of its
folder: a process reads only its own rows. If the files have other arrays than the model, because the loading library
combines them differently, and for names on the hub, the processes load the whole model one after the other, and each
keeps its rows: there is one whole model at a time.

A sharded model is written as a single process would write it, without ever holding it whole: the first process receives
the parameters one after the other and stores them in a file. The library that writes checkpoints reads this file as
tensors: only the operating system's cache of the file is in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from ferret_core.distributed.process_group import ProcessGroup, process_group_failed
from ferret_core.distributed.sharded_tensor import ElementRange, gathered, held, is_shard, local, ranges
from ferret_core.models.load import LoadedModel, load, skeleton
from ferret_core.models.safetensors_map import arrays, tensors
from ferret_core.protocol.digest import canonical_json, digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec

_SIZES = TypeAdapter(list[int])
PLAIN = (torch.float32, torch.bfloat16, torch.float16)
STRETCH = 1 << 22
"""Elements per message."""


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
    """Returns the parts of ``model`` that are whole one at a time: modules that its authors mark as unsplittable."""
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
    """Raises ``process_group.failed`` unless each process holds as many elements of ``name`` as its range has."""
    for rank, (part, size) in enumerate(zip(expected, sizes, strict=True)):
        if size != part.length:
            raise process_group_failed(f"of {name} process {rank} holds {size} elements, not {part.length}")


def load_sharded(spec: ModelSpec, team: ProcessGroup, *, anywhere: bool = False) -> LoadedModel:
    """Loads the model of ``spec`` in shards on the team's device, in evaluation mode, and its tokenizer. Collective.

    Raises the errors of :func:`ferret_core.models.load.load`, :func:`ferret_core.replica.sharded.cut` and
    :func:`ferret_core.replica.sharded.require_one_model`.
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
