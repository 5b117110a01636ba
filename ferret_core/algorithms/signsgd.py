"""signSGD: participants send one bit per parameter; the server applies the majority's sign, or the mean of scaled
signs.

Bernstein et al., "signSGD: Compressed Optimisation for Non-Convex Problems", ICML 2018,
https://arxiv.org/abs/1802.04434, and "signSGD with Majority Vote is Communication Efficient and Fault Tolerant", ICLR
2019, https://arxiv.org/abs/1810.05291. EF-signSGD: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient
Compression Schemes", ICML 2019, https://arxiv.org/abs/1901.09847.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            mᵢ ← w − wᵢ (+ eᵢ)
            send sign(mᵢ), and of every tensor l the scale λᵢ,l = mean |mᵢ,l|
            eᵢ,l ← mᵢ,l − λᵢ,l sign(mᵢ,l)                                       (error feedback)
        vote: λ_l = Σᵢ nᵢ λᵢ,l / Σᵢ nᵢ;  w_l ← w_l − a λ_l sign(Σᵢ nᵢ sign(mᵢ,l))
        mean: w_l ← w_l − a Σᵢ nᵢ λᵢ,l sign(mᵢ,l) / Σᵢ nᵢ                       (nᵢ: i's examples, or 1)

A vote discards the minority's signs and all scales except the mean, and no participant could remember them. Error
feedback therefore needs the mean: each participant's memory then holds exactly its own unsent rest. The mean with error
feedback is EF-signSGD, which ``error_feedback = true`` alone selects.

Differences from the papers: There the sign is a gradient's and the step is the learning rate. Here it is the sign of
the move of T local steps, and the size of the step is measured: λ_l, one number per tensor, as in EF-signSGD. A number
as ``scale`` gives the papers' fixed step and sends no λ. A weight with a tied vote does not move. An entry that is
exactly 0 votes by a coin flip from the participant's seed, otherwise it would always vote for plus. The result of a
vote also has one bit per parameter, or two if there are ties; the result of a mean is dense, 4 bytes per parameter.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import apply_dense, average_of, rounding_of, trained_update
from ferret_core.algorithms._sparsify import with_error
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.signsgd import Config
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import Shapes, sizes
from ferret_core.projection.philox import sign_bits
from ferret_core.protocol.wire import Array, Arrays, Contribution


class Algorithm(FullModelMixin):
    """Averages signs, or applies their majority."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns each tensor's number of elements, uint64."""
        return {"lengths": np.array(list(sizes(shapes(model)).values()), np.uint64)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        trained = trained_update(model, client, self.config.local)
        update = client.protected(with_error(trained.vector, client.memory))
        lengths = _lengths(state)
        negative, scales = _negative(update, client.task.seed), self._scales(update, lengths)
        memory: Arrays = {}
        if self.config.error_feedback:
            memory = {"error": update - np.repeat(scales, lengths) * _signs(negative)}
        arrays = {"signs": np.packbits(negative)}
        if self.config.scale == "mean":
            arrays["scales"] = scales
        return LocalUpdate(arrays, trained.metrics, memory=memory)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        if self.config.aggregation == "mean":
            return average_of(contributions, partial(self._update_of, _lengths(state)))
        return self._vote(contributions)

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        return self._update(contribution.arrays, _lengths(state))

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        update = result["update"] if "update" in result else self._step(result, _lengths(state))
        apply_dense(model, update, rate, int(result["rounding"][0]))
        return state

    def _vote(self, contributions: Iterable[Weighted]) -> Arrays:
        """Returns the majority's signs, the ties, and the mean scales."""
        received = iter(contributions)
        first = next(received)
        votes, total = np.float32(first.pull) * _votes(first.contribution), first.weight
        scales = first.pull * _scales_of(first.contribution)
        for sent in received:
            votes += np.float32(sent.pull) * _votes(sent.contribution)
            scales += sent.pull * _scales_of(sent.contribution)
            total += sent.weight
        result = {"signs": np.packbits(votes < 0), "rounding": rounding_of(first.contribution)}
        if (votes == 0).any():
            result["tied"] = np.packbits(votes == 0)
        if self.config.scale == "mean":
            result["scales"] = (scales / total).astype(np.float32)
        return result

    def _step(self, result: Arrays, lengths: Array) -> Array:
        """Returns the move of the weights by a vote, fp32 (d,)."""
        step = self._update(result, lengths)
        if "tied" in result:
            step[np.unpackbits(result["tied"], count=len(step)) == 1] = 0
        return step

    def _update_of(self, lengths: Array, received: Contribution) -> Array:
        return self._update(received.arrays, lengths)

    def _update(self, arrays: Arrays, lengths: Array) -> Array:
        """Returns scaled signs, fp32 (d,)."""
        signs = _signs(np.unpackbits(arrays["signs"], count=int(lengths.sum())))
        return signs * (np.repeat(arrays["scales"], lengths) if "scales" in arrays else np.float32(self.config.scale))

    def _scales(self, update: Array, lengths: Array) -> Array:
        """Returns fp32, one per tensor: the size of the update that a sign represents."""
        if self.config.scale != "mean":
            return np.full(len(lengths), self.config.scale, np.float32)
        parts = np.split(np.abs(update), np.cumsum(lengths)[:-1])
        return np.array([part.mean(dtype=np.float64) for part in parts], np.float32)


def _lengths(state: State) -> Array:
    """Returns int64, one per tensor: its number of elements."""
    return state["lengths"].astype(np.int64)


def _negative(update: Array, seed: int) -> Array:
    """Returns bool (d,): True for votes for minus."""
    zero = update == 0
    if not zero.any():
        return update < 0
    coins = sign_bits(seed, 0, 0, len(update), torch.device("cpu")).numpy() < 0
    return (update < 0) | (zero & coins)


def _votes(received: Contribution) -> Array:
    return _signs(np.unpackbits(received.arrays["signs"]))


def _scales_of(received: Contribution) -> Array:
    """Returns fp64, one per tensor; empty if the step is fixed."""
    return received.arrays.get("scales", np.zeros(0)).astype(np.float64)


def _signs(negative: Array) -> Array:
    """Returns fp32: −1 for a set bit, 1 otherwise."""
    return 1 - 2 * negative.astype(np.float32)
