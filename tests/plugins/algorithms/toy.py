"""The toy: a complete federated algorithm without a step of training, for tests that are not about training.

    for each round r:
        for each participant i in parallel:
            send mᵢ, the mean token of T batches, in millionths, and the round before's
        w ← w − a · Σᵢ nᵢ mᵢ / Σᵢ nᵢ          (every weight; nᵢ: i's examples, or 1)

The memory makes a participant that lost it send another number.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np
from ferret_core.algorithms.configs.toy import Config  # pyrefly: ignore[missing-import]
from torch import nn

from ferret_core.algorithms._dense import apply_dense, average, rounding_of
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import Shapes, count
from ferret_core.protocol.wire import Array, Arrays, Contribution


class Algorithm(FullModelMixin):
    """Every weight moves by the mean of the participants' numbers."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        return {}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        local = self.config.local
        steps, sums = local.steps or 1, 0.0
        batches = islice(client.shard.batches(local.batch_size, client.task.data_seed), steps)
        for step, batch in enumerate(batches, start=1):
            sums += float(batch.input_ids.double().mean())
            if client.on_step is not None:
                client.on_step(step)
        before = client.memory.get("mean", np.zeros(1, np.float32))
        mean = client.protected(np.array([sums / steps * 1e-6], np.float32) + before)
        metrics = {"train_loss": sums / steps, "trained_sequences": float(steps * local.batch_size)}
        return LocalUpdate({"mean": mean}, metrics, memory={"mean": mean})

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average(contributions, ["mean"])

    def coordinates(self, state: State, contribution: Contribution) -> Arrays:
        return contribution.arrays

    def centred(self, first: Contribution, centre: Arrays, count: int) -> Arrays:
        return {**centre, "rounding": rounding_of(first)}

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        return np.full(count(shapes), contribution.arrays["mean"][0])

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        update = np.full(count(shapes(model)), result["mean"][0])
        apply_dense(model, update, rate, int(result["rounding"][0]))
        return state
