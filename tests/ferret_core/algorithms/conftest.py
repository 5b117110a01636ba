"""A federation whose participants' training is given by the test; everything around it is real."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from ferret_core.algorithms import base
from ferret_core.algorithms.base import NOTHING, Client, FederatedAlgorithm, LocalUpdate, State, Weighted
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.models.parameters import shapes, trainable
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.local import LocalMetrics
from tests.ferret_core.replicas import TASK, contribution
from tests.refusals import refused


class Weights(nn.Module):
    """Tensors of the given shapes, all ones."""

    def __init__(self, *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        for number, shape in enumerate(shapes):
            self.register_parameter(f"weight_{number}", nn.Parameter(torch.ones(shape, dtype=dtype)))

    @property
    def flat(self) -> Array:
        """All weights, fp32 (d,), in canonical order."""
        return torch.cat([weight.detach().float().flatten() for weight in trainable(self).values()]).numpy()


class Participation(NamedTuple):
    """What the server received, and what the participant keeps."""

    contribution: Contribution
    memory: Arrays


class Round(NamedTuple):
    """What a round moved the model by, fp32 (d,), the next state, and what its participants sent and keep."""

    moved: Array
    state: State
    parts: list[Participation]

    @property
    def memories(self) -> list[Arrays]:
        return [part.memory for part in self.parts]


def sent_over_the_wire(update: LocalUpdate, client: Client) -> Contribution:
    """A local update, stamped with its task, as it arrives."""
    told = {"examples": len(client.shard), "metrics": update.metrics, **update.basis_fields}
    return Contribution.decode(contribution(update.arrays, client.task, **told).encode())


class Lab:
    """One participant at a time; what it sends has been over the wire, and so has what it keeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.task = TASK
        self.on_step: Callable[[int], None] | None = None
        self._train: Callable[..., None] = lambda model, **_: None
        monkeypatch.setattr(base, "train", self._called)

    def _called(self, model: nn.Module, batches: Any, config: Any, on_step: Any, **others: Any) -> LocalMetrics:
        self._train(model, config=config, on_step=on_step, **others)
        return LocalMetrics(1.0, 1, 1)

    def algorithm(self, name: str, **options: Any) -> Any:
        """The algorithm of this name with these options."""
        module = import_module(f"ferret_core.algorithms.{name}")
        return module.Algorithm(module.Config.model_validate(options))

    def blamed(self, algorithm: Any, model: nn.Module, sent: Contribution, task: Any = None, **changes: Any) -> str:
        """The field for which the server refuses ``sent`` with other arrays, and other members of ``meta``."""
        meta = sent.meta.model_copy(update=changes.pop("meta", {}))
        with refused("contribution.malformed") as caught:
            algorithm.config.check(Contribution(meta, {**sent.arrays, **changes}), task or TASK, shapes(model))
        return caught.value.errors[0].field

    def participate(
        self,
        algorithm: Any,
        model: nn.Module,
        state: State,
        train: Callable[..., None] | Array,
        memory: Arrays = NOTHING,
        **task: Any,
    ) -> Participation:
        """``train`` is the update that training comes to, fp32 (d,), or what does it."""
        self._train = train if callable(train) else moved_by(train)
        for array in memory.values():
            array.flags.writeable = False  # as it is when it was read: a round that is not committed must not change it
        client = Client(TASK.model_copy(update=task), ClientData([Encoded([1], [2])], pad_id=0), memory, self.on_step)
        update = algorithm.local_update(model, state, client)
        received = sent_over_the_wire(update, client)
        algorithm.config.check(received, client.task, shapes(model))
        return Participation(received, {name: array.copy() for name, array in update.memory.items()})

    def round(
        self,
        algorithm: Any,
        model: Weights,
        updates: Sequence[Any],
        *,
        state: State | None = None,
        memories: Sequence[Arrays] | None = None,
        weights: Sequence[float] | None = None,
        seeds: Iterable[int] = (),
        **task: Any,
    ) -> Round:
        """A round of participants with these updates, of seeds 0, 1 … unless others are given."""
        state = algorithm.init_state(model, 0) if state is None else state
        memories, seeds = memories or [{}] * len(updates), [*seeds] or range(len(updates))
        parts = [
            self.participate(algorithm, model, state, update, memory, seed=seed, **task)
            for update, memory, seed in zip(updates, memories, seeds, strict=True)
        ]
        received = zip(weights or [1.0] * len(parts), parts, strict=True)
        before = model.flat
        state = self.fold(algorithm, model, state, *(Weighted(weight, part.contribution) for weight, part in received))
        return Round(before - model.flat, state, parts)

    def fold(
        self, algorithm: FederatedAlgorithm, model: nn.Module, state: State, *received: Weighted, rate: float = 1.0
    ) -> State:
        """A round of these contributions."""
        return algorithm.apply_update(model, state, algorithm.aggregate(state, received), rate)

    def update(
        self, algorithm: FederatedAlgorithm, model: Weights, state: State, *received: Weighted
    ) -> tuple[Array, State]:
        """What a round of these contributions moves the model by, fp32 (d,), and the next state."""
        before = model.flat
        state = self.fold(algorithm, model, state, *received)
        return before - model.flat, state


def moved_by(update: Array) -> Callable[..., None]:
    def train(model: nn.Module, **_: Any) -> None:
        parameters = list(trainable(model).values())
        parts = torch.from_numpy(update).split([weight.numel() for weight in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.data -= part.view_as(parameter)

    return train


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(monkeypatch)


@pytest.fixture
def weights() -> type[Weights]:
    return Weights


@pytest.fixture
def draw() -> Callable[..., Array]:
    """``draw(n, seed)``: an update of multiples of 2⁻¹⁰, so that sums are exact."""

    def make(count: int, seed: int = 0) -> Array:
        return (np.random.default_rng(seed).integers(-512, 512, count) / 1024).astype(np.float32)

    return make
