"""Fed-SB: participants tune a small core between two frozen bases of every matrix, and cores are averaged exactly.

Singhal et al., "Fed-SB: A Silver Bullet for Extreme Communication Efficiency and Performance in (Private) Federated
LoRA Fine-Tuning", 2025, https://arxiv.org/abs/2502.15436, with the adapters of Ponkshe et al., "Initialization using
Update Approximation is a Silver Bullet for Extremely Efficient Low-Rank Fine-Tuning" (LoRA-SB), 2024,
https://arxiv.org/abs/2411.19557. Sends r² numbers per tuned matrix of any size.

    G_l ← sign(∂ℓ/∂w_l) of every tuned matrix l (n_l × m_l), by the mean gradient on public text: a first step of Adam
    U_l, V_l ← G_l's r leading singular vectors, n_l × r and m_l × r; everyone downloads them with w, once
    for each round r:
        for each participant i in parallel:
            Rᵢ,l ← 0; T steps of Adam on Rᵢ alone, with w_l + U_l Rᵢ,l V_lᵀ instead of w_l
            send Cᵢ,l = −Rᵢ,l, quantised
        C_l ← Σᵢ nᵢ Cᵢ,l / Σᵢ nᵢ;  w_l ← w_l − a U_l C_l V_lᵀ                     (nᵢ: i's examples, or 1)

The mean of cores is the core of the mean update. With ``coordinates = "sign"`` a core takes r² bits.

Differences from the authors: Their code takes the gradient at 50 examples of all participants' data together, which
would reveal private data. Here the server takes it at as many examples of the validation split, which no participant
trains on. Their R starts at G's core; here it starts at 0, and a round's result is added to w.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ferret_core.algorithms._dense import apply_dense, average_of, rounding_of
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.fed_sb import WEIGHT, Config, Matrix
from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.models.parameters import shapes, trainable, working_copy
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection import quantize
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.local import seeded
from ferret_core.training.unit_gradients import unit_gradients

ITERATIONS = 10
"""Iterations of the randomised decomposition, as in the authors' code."""


class Algorithm(FullModelMixin):
    """Averages cores between frozen bases."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the ranks of the tuned matrices; the bases are added."""
        return {"ranks": np.array([matrix.rank for matrix in self.config.matrices(shapes(model))], np.uint64)}

    def bases(self, model: nn.Module, public: ClientData, seed: int) -> Arrays:
        """Returns U and V of all tuned matrices, fp32, flattened and concatenated."""
        tuned = self.config.matrices(shapes(model))
        with working_copy(model), seeded(torch.device("cpu"), seed):
            (gradients,) = unit_gradients(model, public, [range(len(public))], self.config.local, seed)
            bases = [_leading(gradients[matrix.layer + WEIGHT].sign(), matrix.rank) for matrix in tuned]
        left, right = zip(*bases, strict=True)
        return {"U": np.concatenate(left, axis=None), "V": np.concatenate(right, axis=None)}

    def basis_layouts(self, shapes: Shapes) -> Mapping[str, Layout]:
        tuned, fp32 = self.config.matrices(shapes), np.dtype(np.float32)
        left = sum(matrix.rows * matrix.rank for matrix in tuned)
        right = sum(matrix.columns * matrix.rank for matrix in tuned)
        return {"U": Layout(fp32, (left,)), "V": Layout(fp32, (right,))}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        tuned = self.config.matrices(shapes(model))
        with working_copy(model), _cores(model, tuned, state) as cores:
            trained = client.train(model, self.config.local)
            update = torch.cat([-core.detach().flatten() for core in cores]).cpu().numpy()
        parts = torch.from_numpy(client.protected(update)).split([matrix.rank**2 for matrix in tuned])
        arrays = quantize.quantize(parts, self.config.coordinates, client.task.seed)
        return LocalUpdate(arrays, trained.metrics)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average_of(contributions, partial(self._cores_of, state))

    def coordinates(self, state: State, contribution: Contribution) -> Arrays:
        return {"update": self._cores_of(state, contribution)}

    def centred(self, first: Contribution, centre: Arrays, count: int) -> Arrays:
        return {**centre, "rounding": rounding_of(first)}

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        return self._update(shapes, state, self._cores_of(state, contribution))

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        apply_dense(model, self._update(shapes(model), state, result["update"]), rate, int(result["rounding"][0]))
        return state

    def _cores_of(self, state: State, received: Contribution) -> Array:
        """Returns all cores, fp32, concatenated."""
        lengths = [int(rank) ** 2 for rank in state["ranks"]]
        return np.concatenate(quantize.decode(received.arrays, self.config.coordinates, lengths))

    def _update(self, shapes: Shapes, state: State, cores: Array) -> Array:
        """Returns fp32 (d,): U C Vᵀ of every tuned matrix, 0 elsewhere."""
        tuned, update = self.config.matrices(shapes), np.zeros(count(shapes), np.float32)
        parts = np.split(cores, np.cumsum([matrix.rank**2 for matrix in tuned])[:-1])
        for matrix, core in zip(tuned, parts, strict=True):
            left, right = matrix.basis(state["U"], state["V"])
            update[matrix.elements] = _product(_product(left, core.reshape(matrix.rank, -1)), right.T).reshape(-1)
        return update


def _product(left: Array, right: Array) -> Array:
    """Multiplies matrices by plain products and sums, a column of ``left`` at a time: the same bits everywhere."""
    total = np.zeros((len(left), right.shape[1]), np.float32)
    for column, row in zip(left.T, right, strict=True):
        total += column[:, None] * row
    return total


def _leading(step: Tensor, rank: int) -> tuple[Array, Array]:
    """Returns U, fp32 (n, rank), and V, fp32 (m, rank), close to the leading singular vectors of ``step`` (n, m).

    Raises ``training.non_finite``.
    """
    if not bool(step.isfinite().all()):
        raise FerretError("training.non_finite", "the base model's gradient on the public examples is not finite")
    left, _, right = torch.svd_lowrank(step, rank, niter=ITERATIONS)
    return left.numpy(), right.numpy()


@contextmanager
def _cores(model: nn.Module, tuned: Sequence[Matrix], state: State) -> Generator[list[nn.Parameter]]:
    """Makes the matrices' cores, which start at 0, the model's only trainable parameters in the ``with`` block."""
    frozen = list(trainable(model).values())
    layers: list[Any] = [model.get_submodule(matrix.layer) for matrix in tuned]
    cores = [nn.Parameter(torch.zeros(matrix.rank, matrix.rank, device=frozen[0].device)) for matrix in tuned]
    handles: list[Any] = []
    try:
        for parameter in frozen:
            parameter.requires_grad_(False)
        for layer, core, matrix in zip(layers, cores, tuned, strict=True):
            layer.register_parameter("core", core)
            U, V = (torch.from_numpy(part.copy()).to(core.device) for part in matrix.basis(state["U"], state["V"]))
            handles.append(layer.register_forward_hook(_adding(core, U, V, isinstance(layer, nn.Linear))))
        yield cores
    finally:
        for handle in handles:
            handle.remove()
        for layer in layers:
            layer._parameters.pop("core", None)
        for parameter in frozen:
            parameter.requires_grad_(True)


def _adding(core: nn.Parameter, U: Tensor, V: Tensor, transposed: bool) -> Callable[..., Tensor]:
    """Returns a hook that adds U R Vᵀ's output to a layer's; ``transposed`` if the matrix is outputs × inputs."""

    def add(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        (values,) = inputs
        return output + (values @ V @ core.T @ U.T if transposed else values @ U @ core @ V.T)

    return add
