"""Ferret: first-order local updates, sent as a seed and the coordinates of the update on random bases.

Shu et al., "Ferret: Federated Full-Parameter Tuning at Scale for Large Language Models", ICML 2025, Algorithm 1,
with block-wise projection (§3.2, equations 6 to 8) and coordinates in unbiased units.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ                        (Step 2: local updates)
            Δᵢ = w − wᵢ; K_l from the allocation rule; seed sᵢ fresh every round
            send sᵢ and γᵢ,l = (ρ_l K_l)⁻¹ V_lᵀ Δᵢ,l for every block l              (Step 3: projected updates)
        w ← w − a · Σᵢ (Σ_l V_l(sᵢ) γᵢ,l) / N                                     (Step 1: global aggregation)

Where paper and published code differ: seeds are fresh per participant and round (paper; the code keeps one pool),
K = Σ K_l exactly (paper; the code caps each block), and a = 1 is the unbiased update (the code's scale is a third).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from ferret_core.algorithms._base import State, contribution
from ferret_core.datasets._base import Shard
from ferret_core.models.parameters import restore, snapshot, trainable
from ferret_core.projection import quantize
from ferret_core.projection.allocation import Rule, allocate
from ferret_core.projection.bases import basis
from ferret_core.projection.project import apply_, norms, project
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Array, Arrays, Contribution, malformed
from ferret_core.training.local import LocalConfig, train


class Config(Strict):
    """Ferret's options. The default sends 8 kB: 65,536 one-bit coordinates."""

    K: int = Field(default=65_536, ge=1, description="Coordinates per participant and round, over all blocks")
    basis: Literal["G", "T"] = Field(
        default="G", description="G: signed buckets, cost independent of K; T: the paper's"
    )
    allocation: Rule = Field(default="norm", description="How K is split over the blocks")
    coordinates: quantize.Kind = Field(default="sign", description="How a coordinate travels")
    seeds: Literal["own", "shared"] = Field(
        default="own", description="own: noise averages out; shared: coordinates add up (needs uniform allocation)"
    )
    server_learning_rate: float = Field(default=1.0, gt=0, description="a: 1 is the unbiased update")
    local: LocalConfig = LocalConfig()

    @model_validator(mode="after")
    def _coordinates_add_up(self) -> Self:
        if self.seeds == "shared" and self.allocation != "uniform":
            raise ValueError("seeds = 'shared' needs allocation = 'uniform': only equal K_l add up")
        return self


class Algorithm:
    """Seeds and coordinates, averaged with equal weights."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.basis = basis(config.basis)

    def init_state(self, model: nn.Module) -> State:
        return {}

    def local_update(
        self, model: nn.Module, shard: Shard, task: RoundTask, on_step: Callable[[int], None] | None = None
    ) -> Contribution:
        config = self.config
        before = snapshot(model)
        try:
            batches = shard.batches(config.local.batch_size, task.data_seed)
            trained = train(model, batches, config.local, on_step, seed=task.data_seed)
            after = trainable(model)
            sizes = [parameter.numel() for parameter in after.values()]
            K = self._allocate(norms(before, after), sizes)
            seed = task.seed if config.seeds == "own" else task.round_seed
            coordinates = project(before, after, self.basis, K, seed)
        finally:
            restore(model, before)
        arrays = quantize.quantize(coordinates, config.coordinates)
        return contribution(task, "ferret", arrays, examples=trained.examples, metrics=trained.metrics, seed=seed, K=K)

    def check(self, contribution: Contribution, sizes: Sequence[int]) -> None:
        K, seed = contribution.meta.K, contribution.meta.seed
        if K is None or len(K) != len(sizes) or any(not 0 <= k <= size for k, size in zip(K, sizes, strict=True)):
            raise malformed("K", str(K)[:80], f"expected one number from 0 to the block's size for {len(sizes)} blocks")
        if sum(K) != min(self.config.K, sum(sizes)):
            raise malformed("K", sum(K), f"expected {min(self.config.K, sum(sizes))} coordinates in all")
        if self.config.allocation == "uniform" and list(K) != self._allocate([0.0] * len(sizes), sizes):
            raise malformed("K", str(K)[:80], "is not the uniform allocation, without which coordinates do not add up")
        if seed is None:
            raise malformed("seed", None, "is missing")
        quantize.check(contribution.arrays, self.config.coordinates, K)

    def _allocate(self, norms: Sequence[float], sizes: Sequence[int]) -> list[int]:
        return allocate(self.config.allocation, self.config.K, norms, sizes)

    def aggregate(self, state: State, contributions: Iterable[Contribution]) -> Arrays:
        received = list(contributions)
        return _sum_of(received, self.config.coordinates) if self.config.seeds == "shared" else _side_by_side(received)

    def apply_update(self, model: nn.Module, state: State, result: Arrays) -> State:
        kind = "float32" if self.config.seeds == "shared" else self.config.coordinates
        step = self.config.server_learning_rate / len(result["seeds"])
        apply_(trainable(model), self.basis, _terms(result, kind, step))
        return state


def _side_by_side(received: Sequence[Contribution]) -> Arrays:
    """Own seeds: every participant's coordinates, still quantised, one after the other with their lengths."""
    result = _seeds_and_K(received)
    for name in received[0].arrays:
        parts = [one.arrays[name] for one in received]
        result[name] = np.concatenate(parts)
        result[f"{name}.lengths"] = np.array([len(part) for part in parts], dtype=np.int32)
    return result


def _sum_of(received: Sequence[Contribution], kind: quantize.Kind) -> Arrays:
    """A shared seed and equal K_l: one mean coordinate vector stands for all participants."""
    total = sum(torch.cat(_coordinates(one, kind)) for one in received) / len(received)
    coordinates = torch.as_tensor(total).numpy()
    lengths = np.array([len(coordinates)], dtype=np.int32)
    return {**_seeds_and_K(received[:1]), "coordinates": coordinates, "coordinates.lengths": lengths}


def _seeds_and_K(received: Sequence[Contribution]) -> dict[str, Array]:
    return {
        "seeds": np.array([one.meta.seed for one in received], dtype=np.uint64),
        "K": np.array([one.meta.K for one in received], dtype=np.int32),
    }


def _coordinates(received: Contribution, kind: quantize.Kind) -> list[torch.Tensor]:
    return quantize.dequantize(received.arrays, kind, received.meta.K or ())


def _terms(result: Arrays, kind: quantize.Kind, step: float) -> list[tuple[int, list[torch.Tensor]]]:
    """One reconstruction for each seed: its coordinates per block, already multiplied by ``step``."""
    lengths = {name: np.cumsum(result[f"{name}.lengths"])[:-1] for name in result if f"{name}.lengths" in result}
    parts = {name: np.split(result[name], cuts) for name, cuts in lengths.items()}
    return [
        (int(seed), [step * gamma for gamma in quantize.dequantize(_of(parts, i), kind, K.tolist())])
        for i, (seed, K) in enumerate(zip(result["seeds"], result["K"], strict=True))
    ]


def _of(parts: Mapping[str, Sequence[Array]], participant: int) -> Arrays:
    return {name: part[participant] for name, part in parts.items()}
