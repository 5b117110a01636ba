"""Whole updates: the common part of algorithms in which participants send the difference of every trainable parameter.

A dense update is one fp32 vector (d,): the parameters' differences before − after, flattened, in canonical order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.distributed.sharded_tensor import everywhere, is_shard, like, local
from ferret_core.models.parameters import trainable, working_copy
from ferret_core.models.shapes import Shapes
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import Projected
from ferret_core.protocol.buffers import places
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.config import LocalConfig


class AveragedUpdates(FullModelMixin):
    """The server's side of algorithms with whole updates: FedAvg's."""

    def init_state(self, model: nn.Module, seed: int) -> State:
        return {}

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average(contributions)

    def coordinates(self, state: State, contribution: Contribution) -> Arrays:
        return contribution.arrays

    def centred(self, first: Contribution, centre: Arrays, count: int) -> Arrays:
        return {**centre, "rounding": rounding_of(first)}

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        return contribution.arrays["update"]

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        apply_dense(model, result["update"], rate, int(result["rounding"][0]))
        return state


class AveragedDescents(AveragedUpdates):
    """Algorithms with whole updates and zeroth-order training: participants know only the loss, not its gradient."""

    def __init__(self, config: Any) -> None:
        self.config = config

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        with working_copy(model) as before:
            trained = client.descend(model, self.config.local)
            update = client.protected(dense_update(before, model))
        return LocalUpdate({"update": update}, trained.metrics)


class DenseUpdate(NamedTuple):
    """A participant's dense update, before anything protects it, and the metrics of its training."""

    vector: Array
    metrics: dict[str, float]


def trained_update(model: nn.Module, client: Client, local: LocalConfig) -> DenseUpdate:
    """Trains a copy of ``model`` on the client's shard and returns its dense update; ``model`` stays unchanged."""
    with client.working_copy(model, local) as before:
        if client.rounds_steps(local):
            steps = _StepSum(trainable(model))
            trained = client.train(model, local, moved=steps.add)
            return DenseUpdate(steps.total.numpy(), trained.metrics)
        trained = client.train(model, local)
        return DenseUpdate(dense_update(before, model), trained.metrics)


class _StepSum:
    """``total``, fp32 (d,): the sum of all steps of ``parameters``, in host memory, each before it is rounded."""

    def __init__(self, parameters: Mapping[str, nn.Parameter]) -> None:
        lengths = [parameter.numel() for parameter in parameters.values()]
        self.total = torch.zeros(sum(lengths))
        self._parts = dict(zip(parameters.values(), self.total.split(lengths), strict=True))

    def add(self, parameter: nn.Parameter, after: torch.Tensor) -> None:
        """Adds parameter − after."""
        step = parameter.detach().float().sub_(after)
        self._parts[parameter] += step.reshape(-1).to("cpu")


def dense_update(before: Mapping[str, torch.Tensor], model: nn.Module) -> Array:
    """Returns the update from ``before`` to the current parameters of ``model``; only the host holds all of it."""
    after = trainable(model)
    update = torch.empty(sum(end.numel() for end in after.values()))
    parts = update.split([end.numel() for end in after.values()])
    for part, (name, end) in zip(parts, after.items(), strict=True):
        moved = local(before[name]).to(end.device).float() - local(end).float()
        part.copy_(everywhere(like(end, moved)) if is_shard(end) else moved.reshape(-1))
    return update.numpy()


def average(contributions: Iterable[Weighted], names: Iterable[str] = ("update",)) -> dict[str, Array]:
    """Returns the weighted mean of each of the vectors ``names``, streamed, and ``rounding``, which nobody can
    choose."""
    mean, total, rounding = dict[str, Array](), 0.0, np.empty(0)
    for sent in contributions:
        if not mean:
            # −0.0 + x is x to the bit for every x.
            mean = {name: np.full_like(sent.contribution.arrays[name], -0.0) for name in names}
            rounding = rounding_of(sent.contribution)
        for name, vector in mean.items():
            _add(vector, np.float32(sent.pull), sent.contribution.arrays[name])
        total += sent.weight
    for vector in mean.values():
        vector /= np.float32(total)
    return {**mean, "rounding": rounding}


def _add(total: Array, factor: np.float32, vector: Array) -> None:
    """Computes total ← total + factor · vector, without copying either."""
    for place in places(vector):
        total[place] += factor * vector[place]


def average_of(contributions: Iterable[Weighted], update_of: Callable[[Contribution], Array]) -> dict[str, Array]:
    """Averages the updates, fp32 (d,), that ``update_of`` decodes from contributions, one at a time."""
    decoded = (
        sent._replace(contribution=replace(sent.contribution, arrays={"update": update_of(sent.contribution)}))
        for sent in contributions
    )
    return average(decoded)


def rounding_of(received: Contribution) -> Array:
    """Returns uint64 (1,): the rounding seed for a half-precision model, derived from the round's base model."""
    return np.array([derive_seed("rounding", received.meta.base_digest)], dtype=np.uint64)


def apply_dense(model: nn.Module, update: Array, rate: float, rounding: int) -> None:
    """Computes w ← w − rate · update, through the identity basis, which can move a half-precision model."""
    parameters = trainable(model)
    blocks = blocks_of(parameters)
    step = torch.from_numpy(update.copy()).mul_(rate)
    reconstruct_(parameters, blocks, basis("I"), [Projected(0, step.split([block.size for block in blocks]))], rounding)
