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

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor, nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, Weighted, WholeModel
from ferret_core.algorithms._compressed import with_error
from ferret_core.algorithms._dense import apply_dense, dense_update, rounding_of
from ferret_core.algorithms.configs.powersgd import Config, Matrix, matrices
from ferret_core.models.parameters import shapes, working_copy
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Array, Arrays


class Algorithm(WholeModel):
    """Low-rank updates with error feedback, averaged."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """The shared Q of all matrices, flattened one after the other, fp32."""
        draws = np.random.default_rng(derive_seed(seed, "powersgd"))
        return {"Q": draws.standard_normal(self.config.layouts(shapes(model))["Q"].shape, np.float32)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        tensors = matrices(shapes(model), self.config.rank)
        with working_copy(model) as before:
            trained = client.train(model, self.config.local)
            update = torch.from_numpy(with_error(dense_update(before, model), client.memory))
        warm = torch.from_numpy(state["Q"].copy())
        sent = {name: torch.empty(shape) for name, (_, shape) in self.config.layouts(shapes(model)).items()}
        for tensor in tensors:
            matrix = update[tensor.elements].view(tensor.rows, tensor.columns)
            if tensor.rank:
                left, right = _factors(matrix, warm[tensor.Q].view(tensor.columns, tensor.rank))
                sent["P"][tensor.P], sent["Q"][tensor.Q] = left.flatten(), right.flatten()
                matrix -= left @ right.T
            else:
                sent["whole"][tensor.whole] = matrix.flatten()
                matrix.zero_()
        arrays = {name: values.numpy() for name, values in sent.items()}
        memory = {"error": update.numpy()}
        return LocalUpdate(arrays, trained.metrics, memory=memory)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        """All participants' factors, fp32 (N, …), the weights in Q; and the mean of what was sent whole."""
        received = list(contributions)
        total = sum(sent.weight for sent in received)
        weighted = [(np.float32(sent.pull / total), sent.contribution.arrays) for sent in received]
        return {
            "P": np.stack([arrays["P"] for _, arrays in weighted]),
            "Q": np.stack([share * arrays["Q"] for share, arrays in weighted]),
            "whole": _sum([share * arrays["whole"] for share, arrays in weighted]),
            "rounding": rounding_of(received[0].contribution),
        }

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        tensors = matrices(shapes(model), self.config.rank)
        update = np.empty(sum(tensor.rows * tensor.columns for tensor in tensors), np.float32)
        for tensor in tensors:
            update[tensor.elements] = _product(tensor, result) if tensor.rank else result["whole"][tensor.whole]
        apply_dense(model, update, rate, int(result["rounding"][0]))
        return {"Q": _sum(result["Q"])}


def _factors(matrix: Tensor, warm: Tensor) -> tuple[Tensor, Tensor]:
    """P, with orthonormal columns, and Q of one step of power iteration from the columns of ``warm``.

    P's columns have the signs that Gram–Schmidt gives them, so that the Q of like updates do not cancel in the mean.
    """
    basis, triangle = torch.linalg.qr(matrix @ warm)
    basis *= torch.where(triangle.diagonal() < 0, -1.0, 1.0)
    return basis, matrix.T @ basis


def _product(matrix: Matrix, result: Arrays) -> Array:
    """fp32 (rows · columns,): Σᵢ Pᵢ Qᵢᵀ, a column at a time by plain products and sums, on every machine to the bit.

    A library's matrix product adds in an order of its own, and replicas must agree.
    """
    left = result["P"][:, matrix.P].reshape(-1, matrix.rows, matrix.rank)
    right = result["Q"][:, matrix.Q].reshape(-1, matrix.columns, matrix.rank)
    total = np.zeros((matrix.rows, matrix.columns), np.float32)
    term = np.empty_like(total)
    for n, column in np.ndindex(len(left), matrix.rank):
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
