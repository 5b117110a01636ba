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

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from pydantic import Field
from torch import nn

from ferret_core.algorithms._base import State, contribution
from ferret_core.datasets._base import Shard
from ferret_core.models.parameters import restore, snapshot, trainable
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
        before = snapshot(model)
        try:
            trained = train(model, shard.batches(local.batch_size, task.data_seed), local, on_step, seed=task.data_seed)
            update = torch.cat(
                [(before[name] - after.detach()).reshape(-1) for name, after in trainable(model).items()]
            )
        finally:
            restore(model, before)
        arrays = {"update": update.cpu().numpy()}
        return contribution(task, "fedavg", arrays, examples=trained.examples, metrics=trained.metrics)

    def check(self, contribution: Contribution, sizes: Sequence[int]) -> None:
        arrays = contribution.arrays
        if set(arrays) != {"update"}:
            raise malformed("arrays", ", ".join(sorted(arrays)), "expected exactly 'update'")
        if arrays["update"].dtype != np.float32 or arrays["update"].shape != (sum(sizes),):
            found = f"{arrays['update'].dtype} {arrays['update'].shape}"
            raise malformed("update", found, f"expected float32 ({sum(sizes)},)")

    def aggregate(self, state: State, contributions: Iterable[Contribution]) -> Arrays:
        received = iter(contributions)
        total = next(received).arrays["update"].copy()
        count = 1
        for one in received:
            total += one.arrays["update"]
            count += 1
        return {"update": total / np.float32(count)}

    def apply_update(self, model: nn.Module, state: State, result: Arrays) -> State:
        update = torch.from_numpy(result["update"].copy())
        parameters = list(trainable(model).values())
        with torch.no_grad():
            for parameter, part in zip(parameters, update.split([p.numel() for p in parameters]), strict=True):
                parameter.sub_(self.config.server_learning_rate * part.view_as(parameter).to(parameter.device))
        return state
