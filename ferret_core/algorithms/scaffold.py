"""SCAFFOLD: control variates correct every local step for the drift towards one participant's data.

Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020,
https://arxiv.org/abs/1910.06378, Algorithm 1 with option II. It sends 2·d numbers, and receives as many.

    c and all cᵢ start at 0
    for each round r, with S the participants sampled of N:
        for each participant i in S in parallel:
            wᵢ ← w; T times: a step of a first-order optimizer on wᵢ, then wᵢ ← wᵢ − η (c − cᵢ)
            Δᵢ = w − wᵢ;  cᵢ⁺ = cᵢ − c + Δᵢ / (T η)                             (option II)
            send Δᵢ and (cᵢ⁺ − cᵢ) / N; cᵢ ← cᵢ⁺
        w ← w − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ                                            (nᵢ: i's examples, or 1)
        c ← c + |S| · Σᵢ nᵢ (cᵢ⁺ − cᵢ)/N / Σᵢ nᵢ                                (nᵢ = 1: c + Σᵢ (cᵢ⁺ − cᵢ)/N)

A contribution counts whole or not at all, because its participant keeps cᵢ⁺ and c is the mean of all cᵢ. A new
participant, with cᵢ = 0, moves further than the others. So bounds on norms are not applied.

Differences from the paper: The paper corrects the gradient, w ← w − η (g − cᵢ + c); here the step is corrected. For
plain SGD that is the same. With any other optimizer the step is not −η g, so gradients and Δᵢ/(Tη) have different
units. Corrected this way, cᵢ is the mean step in units of η, for SGD with momentum as for Adam, and η is just the
optimizer's learning rate. The paper's participants have equal weights; if they are weighted by examples here, so is c.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import apply_dense, average, dense_update
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.scaffold import SENT, Config
from ferret_core.models.parameters import trainable
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.wire import Array, Arrays, Contribution


class Algorithm(FullModelMixin):
    """Averages dense updates and control variates."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the server's control variate c, fp32 (d,)."""
        return {"control": np.zeros(sum(tensor.numel() for tensor in trainable(model).values()), np.float32)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        rate = np.float32(self.config.local.rate(client.task.round, client.task.rounds))
        control = state["control"]
        own = client.memory.get("control", np.zeros_like(control))
        with client.working_copy(model, self.config.local) as before:
            corrected = _Corrected(model, rate * (control - own), client)
            trained = client._replace(on_step=corrected).train(model, self.config.local)
            update = client.protected(dense_update(before, model))
        change = update / (rate * np.float32(corrected.steps)) - control
        sent = {"update": update, "control": change / np.float32(client.task.population)}
        return LocalUpdate(sent, trained.metrics, memory={"control": own + change})

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        received = 0

        def counted() -> Iterable[Weighted]:
            nonlocal received
            for contribution in contributions:
                received += 1
                yield contribution

        result = average(counted(), SENT)
        result["control"] *= np.float32(received)
        return result

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        return contribution.arrays["update"]

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        apply_dense(model, result["update"], rate, int(result["rounding"][0]))
        return {"control": state["control"] + result["control"]}


class _Corrected:
    """A callback after each local step: moves the weights by −η (c − cᵢ) and counts the steps."""

    def __init__(self, model: nn.Module, correction: Array, client: Client) -> None:
        self.steps = 0
        self._client = client
        self._parameters = list(trainable(model).values())
        parts = torch.from_numpy(correction).split([parameter.numel() for parameter in self._parameters])
        pairs = zip(parts, self._parameters, strict=True)
        self._parts = [part.view_as(parameter).to(parameter.device) for part, parameter in pairs]

    @torch.no_grad()
    def __call__(self, done: int) -> None:
        self.steps = done
        for parameter, part in zip(self._parameters, self._parts, strict=True):
            parameter.sub_(part)
        if self._client.on_step is not None:
            self._client.on_step(done)
