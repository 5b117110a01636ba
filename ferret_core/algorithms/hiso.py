"""HiSo: zeroth-order steps along shared directions, scaled by a curvature that follows from the slopes.

Li et al., "Hessian-Informed Federated Zeroth-Order Optimization", ICLR 2026, https://arxiv.org/abs/2506.02370; with
``smoothing = 0`` it is DeComFL: Li et al., "Achieving Dimension-Free Communication in Federated Learning via
Zeroth-Order Optimization", ICLR 2025, https://arxiv.org/abs/2405.15861. The authors' code:
https://github.com/ZidongLiu/DeComFL.

    κ ← 1, a number for each weight
    for each round r:
        seeds s_t,p of the round, the same for all participants, T steps of P each;  z_t,p ← z(s_t,p) / √κ
        for each participant i in parallel:
            wᵢ ← w; for each of T steps t, on a batch:
                ĝ_p ← (ℓ(wᵢ + εz_t,p) − ℓ(wᵢ − εz_t,p)) / 2ε for each p
                wᵢ ← wᵢ − η Σ_p ĝ_p z_t,p / P
            send the T·P slopes ĝ
        ḡ_t ← Σ_p (Σᵢ nᵢ ĝᵢ,t,p / Σᵢ nᵢ) z_t,p / P for each t          (nᵢ: i's examples, or 1)
        w ← w − a · η Σ_t ḡ_t
        κ ← (1 − ν) κ + ν ḡ_t² for each t in turn

Every replica keeps κ, which is never sent: it follows from seeds and slopes.

Differences from the authors: They take ĝ from the loss at w and on one side of it; here it is taken on both sides. They
draw z from a normal distribution; here its entries are ±1, of the same variance. With one direction alone ḡ² would be
the same for all weights; with P ≥ 2 its mean over draws contains the gradient's square, as theirs does. In their code κ
changes while a round's ḡ_t are rebuilt; here all of a round's z use the participants' κ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import apply_dense, average
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.hiso import Config
from ferret_core.models.parameters import shapes, trainable, working_copy
from ferret_core.models.shapes import count
from ferret_core.projection import FORMAT_VERSION
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.zeroth_order import combined, move_along, zeroth_order_steps


class Algorithm(FullModelMixin):
    """Averages slopes along the round's directions, and updates the curvature from them."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns κ, fp32 (d,); nothing for DeComFL."""
        return {"curvature": np.ones(count(shapes(model)), np.float32)} if self.config.smoothing else {}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        task, local = client.task, self.config.local
        batches = client.shard.batches(local.batch_size, task.data_seed)
        with working_copy(model):
            done = zeroth_order_steps(
                model, batches, local, self._seeds(task.round_seed), client.on_step, _mover(state)
            )
        fields = {"projection": FORMAT_VERSION, "seed": task.round_seed}
        return LocalUpdate({"slopes": client.protected(done.slopes)}, done.trained.metrics, basis_fields=fields)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        seeds: list[int] = []

        def seen() -> Iterable[Weighted]:
            for sent in contributions:
                seeds.append(sent.contribution.meta.seed or 0)
                yield sent

        return {**average(seen(), ["slopes"]), "seed": np.array(seeds[:1], np.uint64)}

    def coordinates(self, state: State, contribution: Contribution) -> Arrays:
        return contribution.arrays

    def centred(self, first: Contribution, centre: Arrays, count: int) -> Arrays:
        return self.aggregate({}, [Weighted(1.0, Contribution(first.meta, centre))])

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        local, seeds = self.config.local, self._seeds(int(result["seed"][0]))
        slopes = dict(zip(seeds, result["slopes"].tolist(), strict=True))
        step, rounding = rate * local.learning_rate / local.perturbations, int(result["rounding"][0])
        if not state:
            move_along(model, {seed: -step * slope for seed, slope in slopes.items()}, rounding)
            return state
        curvature = state["curvature"].copy()
        root, share = np.sqrt(curvature), np.float32(self.config.smoothing)
        for first in range(0, len(seeds), local.perturbations):
            of_step = {seed: slopes[seed] / local.perturbations for seed in seeds[first : first + local.perturbations]}
            curvature *= 1 - share
            curvature += share * np.square(_flat(combined(model, of_step)) / root)
        whole = _flat(
            combined(model, {seed: local.learning_rate / local.perturbations * g for seed, g in slopes.items()})
        )
        apply_dense(model, whole / root, rate, rounding)
        return {"curvature": curvature}

    def _seeds(self, seed: int) -> list[int]:
        """Returns the seeds of the round's directions, step by step."""
        return [derive_seed(seed, "direction", number) for number in range(self.config.local.directions)]


def _mover(state: State) -> Callable[[nn.Module, Mapping[int, float]], None]:
    """Returns a function that moves a model along directions, which are divided by √κ if there is a curvature."""
    if not state:
        return move_along
    return partial(_move_scaled, torch.from_numpy(np.sqrt(state["curvature"])))


@torch.no_grad()
def _move_scaled(root: torch.Tensor, model: nn.Module, steps: Mapping[int, float]) -> None:
    """Computes w ← w + Σ step · z(seed) / √κ in place."""
    parameters = trainable(model)
    parts = root.split([parameter.numel() for parameter in parameters.values()])
    for part, (name, moved) in zip(parts, combined(model, steps).items(), strict=True):
        parameters[name].add_(moved / part.view_as(moved).to(moved.device))


def _flat(tensors: Mapping[str, torch.Tensor]) -> Array:
    """Returns fp32 (d,), in canonical order."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors.values()]).cpu().numpy()
