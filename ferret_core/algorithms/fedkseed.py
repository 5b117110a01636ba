"""FedKSeed: zeroth-order steps along K directions that all participants know; only slopes are sent.

Qin et al., "Federated Full-Parameter Tuning of Billion-Sized Language Models with Communication Cost under 18
Kilobytes", ICML 2024, https://arxiv.org/abs/2312.06353, Algorithm 1.

    K candidate seeds s_k of the experiment
    for each round r:
        for each participant i in parallel:
            wᵢ ← w; for each of T steps, on a batch, with a uniformly drawn candidate k:
                ĝ ← (ℓ(wᵢ + εz(s_k)) − ℓ(wᵢ − εz(s_k))) / 2ε
                wᵢ ← wᵢ − η ĝ z(s_k)
            send the T slopes ĝ
        ḡ_k ← Σᵢ nᵢ · (sum of i's slopes along k) / Σᵢ nᵢ          (nᵢ: i's examples, or 1)
        w ← w − a · η Σ_k ḡ_k z(s_k)

Differences from the paper: Qin et al. send each slope's seed with it. In every round they rebuild w from the first
model, with slopes accumulated over all rounds. Here the draw follows from the task's seed, so that only 4·T bytes
travel up. Each replica adds a round's steps to its model, which gives the same w. Participants step on one fp32 copy of
the weights. Their code draws z from a normal distribution; here its entries are ±1, of the same variance.

The preset ``fedkseed_pro`` is FedKSeed-Pro, of the same paper. With ``sampling = "importance"`` candidates are drawn by
p_k. Each has a history G_k, which starts as {0} and collects every ĝ of a round:

    φ_k ← mean of |ĝ|, cut at a clip, over G_k;  p_k ← softmax of φ scaled to 0 … 1

A steep direction is thus drawn at most e times as often as a flat one. Down travels also what the histories gain.

Each participant draws its own from them by its task's seed, which the server
knows: only slopes travel up. Down travel the mean slopes of the candidates that were drawn: K bits select them, and
each takes 4 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from torch import nn

from ferret_core.algorithms._dense import rounding_of
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.fedkseed import Config
from ferret_core.models.parameters import working_copy
from ferret_core.projection import FORMAT_VERSION
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Array, Arrays
from ferret_core.training.config import ZerothOrderConfig
from ferret_core.training.zeroth_order import move_along, zeroth_order_steps

SCALE = 2.0**40
TERMS = 18
"""Terms of the exponential series: the omitted ones are below the rounding of fp64 for exponents up to 1."""


def candidates(seed: int, K: int) -> Array:
    """Returns uint64 (K,): the seeds of an experiment's directions."""
    return np.array([derive_seed(seed, "candidate", k) for k in range(K)], dtype=np.uint64)


def draw(odds: Array, seed: int, count: int) -> Array:
    """Returns int64 (count,): the candidates that a participant draws, with replacement.

    ``odds``, int64 (K,), with a sum below 2⁶³, are proportional to the probabilities. They are integers, because
    participant and server both draw and must not differ.
    """
    ends = np.cumsum(odds)
    points = [derive_seed(seed, "draw", n) * int(ends[-1]) >> 64 for n in range(count)]
    return np.searchsorted(ends, np.array(points), side="right")


def look_along(model: nn.Module, state: State, client: Client, local: ZerothOrderConfig, odds: Array) -> LocalUpdate:
    """Descends along drawn candidates; returns the slopes, fp32 (steps · perturbations,), in order."""
    task = client.task
    seeds = state["candidates"][draw(odds, task.seed, local.directions)].tolist()
    batches = client.shard.batches(local.batch_size, task.data_seed)
    with working_copy(model):
        done = zeroth_order_steps(model, batches, local, seeds, client.on_step)
    fields = {"projection": FORMAT_VERSION, "seed": task.seed}
    return LocalUpdate({"slopes": client.protected(done.slopes)}, done.trained.metrics, basis_fields=fields)


def history(K: int) -> State:
    """Returns Σ|ĝ| of the candidates' histories, fp32 (K,), and their lengths, int32 (K,); each starts with one 0."""
    return {"magnitudes": np.zeros(K, dtype=np.float32), "counts": np.ones(K, dtype=np.int32)}


def odds(state: State) -> Array:
    """Returns int64 (K,): the probabilities of a :func:`history`, scaled and rounded down."""
    means = state["magnitudes"].astype(np.float64) / state["counts"]
    above = means - means.min()
    return np.floor(_exp(above / (above.max() or 1.0)) * SCALE).astype(np.int64)


def remember(state: State, result: Arrays) -> State:
    """Adds a round to the :func:`history` in ``state``."""
    magnitudes, counts = state["magnitudes"].copy(), state["counts"].copy()
    drawn = drawn_in(result, len(counts))
    magnitudes[drawn] += result["magnitudes"]
    counts[drawn] += result["counts"]
    return {"magnitudes": magnitudes, "counts": counts}


class Gathered(NamedTuple):
    """Slopes of a round's participants along each of K candidates.

    ``slopes``: their mean of Σ ĝ, fp32 (K,); ``magnitudes``: Σ |ĝ| over all of them, fp32 (K,), each ĝ up to a clip;
    ``counts``: numbers of ĝ, int32 (K,).
    """

    slopes: Array
    magnitudes: Array
    counts: Array
    rounding: Array


def gather(odds: Array, contributions: Iterable[Weighted], clip: float) -> Gathered:
    """Adds up the slopes by candidate, in fp64, streamed; the draws follow from the contributions' seeds."""
    slopes, magnitudes = np.zeros(len(odds)), np.zeros(len(odds))
    counts = np.zeros(len(odds), dtype=np.int32)
    total, rounding = 0.0, np.empty(0)
    for weight, contribution, factor in contributions:
        found = factor * contribution.arrays["slopes"].astype(np.float64)
        drawn = draw(odds, contribution.meta.seed or 0, len(found))
        np.add.at(slopes, drawn, weight * found)
        np.add.at(magnitudes, drawn, np.minimum(np.abs(found), clip))
        np.add.at(counts, drawn, 1)
        total, rounding = total + weight, rounding_of(contribution)
    return Gathered((slopes / total).astype(np.float32), magnitudes.astype(np.float32), counts, rounding)


def packed(gathered: Gathered) -> dict[str, Array]:
    """Packs ``drawn``: K bits, uint8; and the slopes of the candidates with a set bit, fp32, in order."""
    drawn = gathered.counts > 0
    return {"drawn": np.packbits(drawn), "slopes": gathered.slopes[drawn], "rounding": gathered.rounding}


def drawn_in(result: Arrays, K: int) -> Array:
    """Returns bool (K,): the candidates that were drawn in a round."""
    return np.unpackbits(result["drawn"], count=K).astype(bool)


def step_along(model: nn.Module, state: State, result: Arrays, step: float) -> None:
    """Computes w ← w − step · Σ_k ĝ_k z_k over the drawn candidates, in one pass over the weights."""
    seeds = state["candidates"]
    chosen = seeds[drawn_in(result, len(seeds))].tolist()
    steps = {seed: -step * slope for seed, slope in zip(chosen, result["slopes"].tolist(), strict=True)}
    move_along(model, steps, int(result["rounding"][0]))


def _exp(x: Array) -> Array:
    """Returns eˣ for x from 0 to 1, by + × ÷ alone: the same bits on every machine, unlike a library's exp."""
    total = np.ones_like(x)
    for n in range(TERMS, 0, -1):
        total = 1 + total * x / n
    return total


class Algorithm(FullModelMixin):
    """Adds up slopes along shared directions, by seed."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.remembers = config.sampling == "importance"

    def init_state(self, model: nn.Module, seed: int) -> State:
        K = self.config.K
        return {"candidates": candidates(seed, K), **(history(K) if self.remembers else {})}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        return look_along(model, state, client, self.config.local, self._odds(state))

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        gathered = gather(self._odds(state), contributions, self.config.clip)
        if not self.remembers:
            return packed(gathered)
        drawn = gathered.counts > 0
        return {**packed(gathered), "magnitudes": gathered.magnitudes[drawn], "counts": gathered.counts[drawn]}

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        local = self.config.local
        step_along(model, state, result, rate * local.learning_rate / local.perturbations)
        return {**state, **remember(state, result)} if self.remembers else state

    def _odds(self, state: State) -> Array:
        return odds(state) if self.remembers else np.ones(self.config.K, dtype=np.int64)
