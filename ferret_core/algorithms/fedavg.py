"""FedAvg: participants train locally and the server averages their whole updates.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
https://arxiv.org/abs/1602.05629. The yardstick: 4·d bytes per participant and round.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            send Δᵢ = w − wᵢ
        w ← w − a · (Σᵢ Δᵢ) / N
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from pydantic import Field
from torch import nn

from ferret_core.algorithms._base import State, contribution
from ferret_core.datasets._base import Shard
from ferret_core.models.parameters import trainable, working_copy
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import Projected, apply_
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Arrays, Contribution, malformed
from ferret_core.training.local import LocalConfig, train


class Config(Strict):
    """FedAvg's options."""

    server_learning_rate: float = Field(default=1.0, gt=0, description="a: 1 applies the mean update as it is")
    local: LocalConfig = LocalConfig()


class Algorithm:
    """Dense updates, averaged with equal weights."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module) -> State:
        return {}

    def local_update(
        self, model: nn.Module, shard: Shard, task: RoundTask, on_step: Callable[[int], None] | None = None
    ) -> Contribution:
        local = self.config.local
        with working_copy(model) as before:
            trained = train(model, shard.batches(local.batch_size, task.data_seed), local, on_step, seed=task.data_seed)
            update = torch.cat(
                [(before[name] - after.detach()).reshape(-1) for name, after in trainable(model).items()]
            )
        arrays = {"update": update.cpu().numpy()}
        return contribution(task, "fedavg", arrays, examples=trained.examples, metrics=trained.metrics)

    def check(self, contribution: Contribution, task: RoundTask, sizes: Mapping[str, int]) -> None:
        arrays, count = contribution.arrays, sum(sizes.values())
        if set(arrays) != {"update"}:
            raise malformed("arrays", ", ".join(sorted(arrays)), "expected exactly 'update'")
        if arrays["update"].dtype != np.float32 or arrays["update"].shape != (count,):
            found = f"{arrays['update'].dtype} {arrays['update'].shape}"
            raise malformed("update", found, f"expected float32 ({count},)")

    def aggregate(self, state: State, contributions: Iterable[Contribution]) -> Arrays:
        received = iter(contributions)
        first = next(received)
        total = first.arrays["update"].copy()
        count = 1
        for one in received:
            total += one.arrays["update"]
            count += 1
        rounding = np.array([derive_seed("rounding", first.meta.base_digest)], dtype=np.uint64)
        return {"update": total / np.float32(count), "rounding": rounding}

    def apply_update(self, model: nn.Module, state: State, result: Arrays) -> State:
        """The mean update on the identity basis, which knows how to move a model kept in half precision."""
        parameters = trainable(model)
        blocks = blocks_of(parameters)
        step = self.config.server_learning_rate * torch.from_numpy(result["update"].copy())
        update = Projected(0, step.split([block.size for block in blocks]))
        apply_(parameters, blocks, basis("I"), [update], int(result["rounding"][0]))
        return state
