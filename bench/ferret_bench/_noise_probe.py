"""One round of an experiment with and without the noise of the projection, from the model that the run has reached."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
import torch

from ferret_core.aggregation.loss_guard import LossGuard
from ferret_core.aggregation.step_guard import MOST_NOISE, noise_ratio
from ferret_core.algorithms.base import Client
from ferret_core.algorithms.configs.ferret import Config, whole
from ferret_core.datasets.tokenization.tokenize import shard_of
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.models.parameters import trainable
from ferret_core.projection import quantize
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block
from ferret_core.projection.project import Projected, norms, project, root_mean_squares
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.ids import SIMULATION
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.server.schedule import server_rate

Tensors = dict[str, torch.Tensor]
Terms = list[Projected]


class Noisy(NamedTuple):
    """``cost`` in nats of the noise of ``K`` coordinates from each participant, the noise in ``percent`` of the
    weights, and the step guard's ρ̂.
    """

    K: int
    cost: float
    percent: float
    noise_ratio: float

    @property
    def capped(self) -> bool:
        """True if ρ̂ is at a bound of the step guard, and no number to average."""
        return not -1 < self.noise_ratio < MOST_NOISE


class Probe(NamedTuple):
    """The round after ``round`` rounds: its local ``rate``, its ``gain`` in nats without noise, and the noise for each
    number of coordinates.
    """

    round: int
    rate: float
    gain: float
    noisy: list[Noisy]


class Probes:
    """A simulation's ``measure`` that probes the next round wherever one of ``rounds`` is done, and leaves the model
    unchanged.

    ``configs`` are Ferret's options for each number of coordinates. The loss is the mean over ``sequences`` evenly
    spaced held-out examples. The noise is drawn ``draws`` times.
    """

    def __init__(
        self, rounds: Sequence[int], configs: Sequence[Config], sequences: int, draws: int, say: Callable[[str], None]
    ) -> None:
        self.found: list[Probe] = []
        self._say = say
        self._rounds = rounds
        self._configs = configs
        self._sequences = sequences
        self._draws = draws

    def __call__(self, replica: Replica, data: FederatedData) -> dict[str, float]:
        if replica.round in self._rounds:
            self.found.append(found := self._probe(replica, data))
            cost = found.noisy[0].cost
            self._say(f"after {found.round} rounds the next gains {found.gain:.3g} nats; noise costs {cost:.3g}")
        return {}

    @property
    def done(self) -> bool:
        return len(self.found) == len(self._rounds)

    def _probe(self, replica: Replica, data: FederatedData) -> Probe:
        guard, base = self._guard(replica, data), replica.snapshot().weights
        move, terms = self._trained(replica, data)
        before, half = guard.loss(replica.model), _loss(replica, guard, base, move, 0.5)
        reached = _loss(replica, guard, base, move, 1.0)
        clean = {name: base[name] - move[name] for name in base}
        noisy = list[Noisy]()
        for config, draws in zip(self._configs, terms, strict=True):
            found = [_noisy(replica, config, guard, base, clean, draw) for draw in draws]
            cost = fmean(loss for loss, _ in found) - reached
            ratio = noise_ratio(before, half + cost / 4, reached + cost)
            total = config.total(config.cut(replica.shapes))
            noisy.append(Noisy(total, cost, fmean(percent for _, percent in found), ratio))
        replica.restore_weights(base)
        rate = self._configs[0].local.rate(replica.round + 1, replica.spec.rounds)
        return Probe(replica.round, rate, before - reached, noisy)

    def _guard(self, replica: Replica, data: FederatedData) -> LossGuard:
        held_out, count = data.held_out, min(self._sequences, len(data.held_out))
        chosen = [held_out[index * len(held_out) // count] for index in range(count)]
        return LossGuard(shard_of(chosen, replica.tokenizer, replica.context, replica.spec.prompt.template))

    def _trained(self, replica: Replica, data: FederatedData) -> tuple[Tensors, list[list[Terms]]]:
        """Trains the next round's participants. Returns the mean move of the weights without noise; and for each number
        of coordinates and draw the terms of its reconstruction.
        """
        spec, number, model = replica.spec, replica.round + 1, replica.model
        names = sampling.sample(spec, number, sampling.client_names(spec.participants.simulated))
        shares = replica.shares([len(data.shard(name)) for name in names])
        rate, local = server_rate(spec.server, number, spec.rounds), self._configs[0].local
        move = {name: torch.zeros_like(weight) for name, weight in trainable(model).items()}
        terms = [[Terms() for _ in range(self._draws)] for _ in self._configs]
        blocks = self._configs[0].cut(replica.shapes)
        for task, share in zip(
            sampling.round_tasks(spec, SIMULATION, number, names, replica.digest), shares, strict=True
        ):
            client = Client(task, data.shard(task.participant))
            with client.working_copy(model, local) as before:
                client.train(model, local)
                after = trainable(model)
                for name, weight in after.items():
                    move[name].add_(before[name] - weight.detach(), alpha=rate * share)
                lengths = norms(before, after, blocks)
                for config, draws in zip(self._configs, terms, strict=True):
                    K = config.allocate(lengths, blocks)
                    for position, draw in enumerate(draws):
                        seed = derive_seed(task.seed, "noise", position)
                        gammas = project(before, after, blocks, basis(config.basis), K, seed).coordinates
                        sent = quantize.quantize(gammas, "sign", whole=whole(blocks))
                        draw.append(Projected(seed, quantize.dequantize(sent, "sign", K, whole(blocks), rate * share)))
        return move, terms


def _loss(replica: Replica, guard: LossGuard, base: Tensors, move: Tensors, part: float) -> float:
    """Returns the loss at a part of the move without noise."""
    replica.restore_weights({name: base[name] - part * move[name] for name in base})
    return guard.loss(replica.model)


def _noisy(
    replica: Replica, config: Config, guard: LossGuard, base: Tensors, clean: Tensors, terms: Terms
) -> tuple[float, float]:
    """Returns the mean loss with a draw of the noise and with its negative, and the noise in percent of the weights."""
    blocks = config.cut(replica.shapes)
    replica.restore_weights(base)
    weights = replica.block_weights()
    reconstruct_(trainable(replica.model), blocks, basis(config.basis), terms)
    noise = {name: weight.detach() - clean[name] for name, weight in trainable(replica.model).items()}
    added = guard.loss(replica.model)
    replica.restore_weights({name: clean[name] - noise[name] for name in clean})
    return (added + guard.loss(replica.model)) / 2, _percent(noise, weights, blocks)


def _percent(noise: Mapping[str, torch.Tensor], weights: Sequence[float], blocks: Sequence[Block]) -> float:
    """Returns the noise relative to the RMS of the weights, as the metric ``projection_noise``."""
    rms = np.array(weights)
    ratios = np.divide(root_mean_squares(noise, blocks), rms, out=np.zeros_like(rms), where=rms > 0)
    sizes = np.array([block.size for block in blocks], np.float64)
    return 100 * math.sqrt((sizes * ratios**2).sum() / sizes.sum())
