"""PowerSGD: participants send the product of every matrix of the update with a thin matrix that they share.

Vogels et al., "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization", NeurIPS 2019,
https://arxiv.org/abs/1905.13727, with one exchange per round, as in the authors' later code
(https://github.com/epfml/powersgd): rounds alternate between the sides of the matrix.

    Q_l of every matrix l (n_l × m_l) starts as noise, m_l × r, with orthonormal columns
    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            Mᵢ,l ← w_l − wᵢ,l + eᵢ,l, as an n_l × m_l matrix        (eᵢ: its error memory, 0 at first)
            odd rounds:  send Pᵢ,l = Mᵢ,l Q_l;   eᵢ,l ← Mᵢ,l − Pᵢ,l Q_lᵀ
            even rounds: send Qᵢ,l = Mᵢ,lᵀ P_l;  eᵢ,l ← Mᵢ,l − P_l Qᵢ,lᵀ
            vectors are sent whole
        odd rounds:  P_l ← Σᵢ nᵢ Pᵢ,l / Σᵢ nᵢ;  w_l ← w_l − a P_l Q_lᵀ;  P_l ← orthogonalise(P_l)
        even rounds: Q_l ← Σᵢ nᵢ Qᵢ,l / Σᵢ nᵢ;  w_l ← w_l − a P_l Q_lᵀ;  Q_l ← orthogonalise(Q_l)

nᵢ is 1, or i's number of examples. Two rounds are one step of power iteration, so the shared factors follow the largest
singular directions of the unsent rest. Contributions add up: the server applies the projection of the mean of the Mᵢ,
of rank r for any number of participants, and the result is as small as one participant's upload.

A tensor with more than two dimensions is the matrix shape[0] × rest. If the factors would not be smaller than the
matrix, it is sent whole.

Differences from the paper: The paper averages Mᵢ Q, orthogonalises the mean and averages Mᵢᵀ P, with two exchanges in
every step; here a participant has one upload per round. The paper compresses the gradients of SGD with momentum; here
the move of T local steps is compressed, and momentum is the server's.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import AveragedUpdates, apply_dense, average, trained_update
from ferret_core.algorithms._gram_schmidt import orthonormal
from ferret_core.algorithms._sparsify import with_error
from ferret_core.algorithms.base import Client, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.powersgd import OTHER, Config, Matrix, Side, matrices, sent_in
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Array, Arrays, Contribution


class Algorithm(AveragedUpdates):
    """Averages low-rank updates with error feedback."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the shared factors of all matrices, fp32, flattened and concatenated; and the seed of their noise."""
        nothing = np.zeros(self.config.layouts(shapes(model), "Q")["Q"].shape, np.float32)
        return self._shared(model, "Q", nothing, derive_seed(seed, "powersgd"))

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        side = sent_in(client.task.round)
        trained = trained_update(model, client, self.config.local)
        update = torch.from_numpy(client.protected(with_error(trained.vector, client.memory)))
        shared = torch.from_numpy(state[OTHER[side]].copy())
        sent = {name: torch.empty(shape) for name, (_, shape) in self.config.layouts(shapes(model), side).items()}
        for tensor in matrices(shapes(model), self.config.rank):
            matrix = update[tensor.elements].view(tensor.rows, tensor.columns)
            if tensor.rank:
                along = shared[tensor.factors[OTHER[side]]].view(-1, tensor.rank)
                turned = matrix if side == "P" else matrix.T
                product = turned @ along
                turned -= product @ along.T
                sent[side][tensor.factors[side]] = product.flatten()
            else:
                sent["whole"][tensor.whole] = matrix.flatten()
                matrix.zero_()
        arrays = {name: values.numpy() for name, values in sent.items()}
        return LocalUpdate(arrays, trained.metrics, memory={"error": update.numpy()})

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average(contributions, ["P" if "Q" in state else "Q", "whole"])

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        return self._update(shapes, state, contribution.arrays)

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        side: Side = "P" if "P" in result else "Q"
        update = self._update(shapes(model), state, result)
        apply_dense(model, update, rate, int(result["rounding"][0]))
        return self._shared(model, side, result[side], int(state["seed"][0]))

    def _update(self, shapes: Shapes, state: State, sent: Arrays) -> Array:
        """Returns fp32 (d,): the products of the sent and the shared factors, and the tensors that were sent whole."""
        tensors, factors = matrices(shapes, self.config.rank), {**state, **sent}
        update = np.empty(tensors[-1].elements.stop, np.float32)
        for tensor in tensors:
            update[tensor.elements] = _product(tensor, factors) if tensor.rank else sent["whole"][tensor.whole]
        return update

    def _shared(self, model: nn.Module, side: Side, factors: Array, seed: int) -> State:
        """Returns the next round's state: every matrix's factor on this side with orthonormal columns."""
        shared = np.empty_like(factors)
        for number, tensor in enumerate(matrices(shapes(model), self.config.rank)):
            if tensor.rank:
                place = tensor.factors[side]
                noise = np.random.default_rng(derive_seed(seed, number))
                shared[place] = orthonormal(factors[place].reshape(-1, tensor.rank), noise).reshape(-1)
        return {side: shared, "seed": np.array([seed], np.uint64)}


def _product(matrix: Matrix, factors: Arrays) -> Array:
    """Returns fp32 (rows · columns,): P Qᵀ, a column at a time by plain products and sums.

    The result is bit-identical on every machine. A library's matrix product adds in an arbitrary order, and replicas
    must agree.
    """
    left = factors["P"][matrix.factors["P"]].reshape(matrix.rows, matrix.rank)
    right = factors["Q"][matrix.factors["Q"]].reshape(matrix.columns, matrix.rank)
    total = np.zeros((matrix.rows, matrix.columns), np.float32)
    for column in range(matrix.rank):
        total += left[:, column, None] * right[None, :, column]
    return total.reshape(-1)
