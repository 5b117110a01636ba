"""PowerSGD: every matrix of the update is sent as a product of two thin ones, found by one step of power iteration.

Vogels et al., "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization", NeurIPS 2019,
https://arxiv.org/abs/1905.13727, Algorithms 1 and 2.

    Q_l of every matrix l starts as Gaussian noise, m_l × r
    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            Mᵢ,l ← w_l − wᵢ,l + eᵢ,l, as an n_l × m_l matrix        (eᵢ: its error memory, 0 at first)
            Pᵢ,l ← orthogonalise(Mᵢ,l Q_l);  Qᵢ,l ← Mᵢ,lᵀ Pᵢ,l
            send all Pᵢ,l and Qᵢ,l, and vectors whole
            eᵢ,l ← Mᵢ,l − Pᵢ,l Qᵢ,lᵀ
        w_l ← w_l − a · Σᵢ nᵢ Pᵢ,l Qᵢ,lᵀ / Σᵢ nᵢ                    (nᵢ: i's examples, or 1)
        Q_l ← Σᵢ nᵢ Qᵢ,l / Σᵢ nᵢ                                    (warm start)

A tensor with more than two dimensions is the matrix shape[0] × rest. Where the factors would be no smaller than the
matrix, it is sent whole.

Where paper and this differ: the paper averages the Mᵢ Q over the workers, orthogonalises the mean, and averages the
Mᵢᵀ P: two exchanges, and one shared P. A participant has one upload a round, so each orthogonalises its own product.
What is applied is then the mean of the participants' own approximations, of rank N·r at most, each the best for its
column space, and the result holds the factors of all; the paper's is one approximation of rank r of the mean. Q stays
shared: it starts the next round for everyone, also for who has never taken part. The paper compresses the gradients
of SGD with momentum, this what T local steps have moved; momentum is the server's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise, starmap
from typing import NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, Weighted, local_update
from ferret_core.algorithms._compressed import check_layouts, with_error
from ferret_core.algorithms._dense import apply_dense, dense_update, rounding_of
from ferret_core.models.parameters import Shapes, shapes, working_copy
from ferret_core.projection.quantize import Layout
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.local import LocalConfig


class Config(Strict):
    """PowerSGD's options."""

    rank: int = Field(default=4, ge=1, description="Columns r of the two factors that stand for a matrix")
    local: LocalConfig = LocalConfig()


class Algorithm:
    """Low-rank updates with error feedback, averaged."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return model

    def init_state(self, model: nn.Module, seed: int) -> State:
        """The shared Q of all matrices, flattened one after the other, fp32."""
        draws = np.random.default_rng(derive_seed(seed, "powersgd"))
        return {"Q": draws.standard_normal(self._layouts(shapes(model))["Q"].shape, np.float32)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        tensors = _tensors(shapes(model), self.config.rank)
        with working_copy(model) as before:
            trained = client.train(model, self.config.local)
            update = torch.from_numpy(with_error(dense_update(before, model), client.memory))
        warm = torch.from_numpy(state["Q"].copy())
        sent = {name: torch.empty(shape) for name, (_, shape) in self._layouts(shapes(model)).items()}
        for one in tensors:
            matrix = update[one.elements].view(one.rows, one.columns)
            if one.rank:
                left, right = _factors(matrix, warm[one.Q].view(one.columns, one.rank))
                sent["P"][one.P], sent["Q"][one.Q] = left.flatten(), right.flatten()
                matrix -= left @ right.T
            else:
                sent["whole"][one.whole] = matrix.flatten()
                matrix.zero_()
        arrays = {name: values.numpy() for name, values in sent.items()}
        memory = {"error": update.numpy()}
        return local_update(client, "powersgd", arrays, metrics=trained.metrics, memory=memory)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, self._layouts(shapes))

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        """All participants' factors, fp32 (N, …), the weights in Q; and the mean of what was sent whole."""
        received = list(contributions)
        total = sum(weight for weight, _ in received)
        shares = [np.float32(weight / total) for weight, _ in received]
        weighted = list(zip(shares, (one.arrays for _, one in received), strict=True))
        return {
            "P": np.stack([arrays["P"] for _, arrays in weighted]),
            "Q": np.stack([share * arrays["Q"] for share, arrays in weighted]),
            "whole": _sum([share * arrays["whole"] for share, arrays in weighted]),
            "rounding": rounding_of(received[0].contribution),
        }

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        tensors = _tensors(shapes(model), self.config.rank)
        update = np.empty(sum(one.rows * one.columns for one in tensors), np.float32)
        for one in tensors:
            update[one.elements] = _product(one, result) if one.rank else result["whole"][one.whole]
        apply_dense(model, update, rate, int(result["rounding"][0]))
        return {"Q": _sum(result["Q"])}

    def _layouts(self, shapes: Shapes) -> dict[str, Layout]:
        tensors = _tensors(shapes, self.config.rank)
        lengths = {
            "P": sum(one.rows * one.rank for one in tensors),
            "Q": sum(one.columns * one.rank for one in tensors),
            "whole": sum(one.columns for one in tensors if one.rank == 0),
        }
        return {name: Layout(np.dtype(np.float32), (length,)) for name, length in lengths.items()}


class _Tensor(NamedTuple):
    """A parameter as a matrix, and where it lies in the update and in what is sent; rank 0 and one row if whole."""

    rows: int
    columns: int
    rank: int
    elements: slice
    P: slice
    Q: slice
    whole: slice


def _tensors(shapes: Shapes, rank: int) -> list[_Tensor]:
    """The parameters in canonical order."""
    matrices = [_as_matrix(shape, rank) for shape in shapes.values()]
    places = zip(
        _places(rows * columns for rows, columns, _ in matrices),
        _places(rows * r for rows, _, r in matrices),
        _places(columns * r for _, columns, r in matrices),
        _places(0 if r else columns for _, columns, r in matrices),
        strict=True,
    )
    return [_Tensor(*matrix, *there) for matrix, there in zip(matrices, places, strict=True)]


def _places(lengths: Iterable[int]) -> Iterator[slice]:
    """Where parts of these lengths lie, one after the other."""
    return starmap(slice, pairwise(accumulate(lengths, initial=0)))


def _as_matrix(shape: tuple[int, ...], rank: int) -> tuple[int, int, int]:
    """(rows, columns, rank)."""
    size = math.prod(shape)
    if len(shape) < 2 or rank * (shape[0] + size // shape[0]) >= size:
        return 1, size, 0
    return shape[0], size // shape[0], rank


def _factors(matrix: Tensor, warm: Tensor) -> tuple[Tensor, Tensor]:
    """P, with orthonormal columns, and Q of one step of power iteration from the columns of ``warm``.

    P's columns have the signs that Gram–Schmidt gives them, so that the Q of like updates do not cancel in the mean.
    """
    basis, triangle = torch.linalg.qr(matrix @ warm)
    basis *= torch.where(triangle.diagonal() < 0, -1.0, 1.0)
    return basis, matrix.T @ basis


def _product(one: _Tensor, result: Arrays) -> Array:
    """fp32 (rows · columns,): Σᵢ Pᵢ Qᵢᵀ, a column at a time by plain products and sums, on every machine to the bit.

    A library's matrix product adds in an order of its own, and replicas must agree.
    """
    left = result["P"][:, one.P].reshape(-1, one.rows, one.rank)
    right = result["Q"][:, one.Q].reshape(-1, one.columns, one.rank)
    total = np.zeros((one.rows, one.columns), np.float32)
    term = np.empty_like(total)
    for n, column in np.ndindex(len(left), one.rank):
        np.multiply(left[n, :, column, None], right[n, None, :, column], out=term)
        total += term
    return total.reshape(-1)


def _sum(rows: Iterable[Array]) -> Array:
    """Added in their order."""
    first, *rest = rows
    total = first.copy()
    for row in rest:
        total += row
    return total
