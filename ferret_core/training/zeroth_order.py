"""Local training by forward passes alone: the slope of the loss along a random direction, and a step down the slope.

SPSA: Spall, "Multivariate Stochastic Approximation Using a Simultaneous Perturbation Gradient Approximation", IEEE
Transactions on Automatic Control 37(3), 1992. In place, from a seed, as in MeZO: Malladi et al., "Fine-Tuning Language
Models with Just Forward Passes", NeurIPS 2023, https://arxiv.org/abs/2305.17333, Algorithm 1.

    for each step, on one batch:
        for each of its directions z, regenerated from a seed and never stored:
            ĝ ← (ℓ(w + εz) − ℓ(w − εz)) / 2ε
        w ← w − η · mean of ĝ z

Directions are random signs, as in Spall's paper: the projection's basis R, the same bits on every device for one random
bit per element. MeZO's are Gaussian. Both have E zzᵀ = 1, so the estimate is unbiased for the same gradient; its
squared error is d − 1 times the gradient's with signs, d + 1 times with Gaussians.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from ferret_core.datasets.tokenization.client_data import Batch
from ferret_core.models.parameters import inference, trainable
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import Projected
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array
from ferret_core.training.config import ZerothOrderConfig
from ferret_core.training.local import LocalMetrics
from ferret_core.training.loss import count_targets, response_loss
from ferret_core.training.micro_batches import MicroBatches, micro_batches


class Descent(NamedTuple):
    """``slopes``: every direction's ĝ, in nats per unit of each weight, fp32 (steps · perturbations,) in order."""

    slopes: Array
    trained: LocalMetrics


def zeroth_order_steps(
    model: nn.Module,
    batches: Iterator[Batch],
    config: ZerothOrderConfig,
    seeds: Iterable[int],
    on_step: Callable[[int], None] | None = None,
) -> Descent:
    """Moves ``model``'s fp32 weights in place along the directions of ``seeds``, one for each of ``config.directions``.

    Works in evaluation mode, without dropout, because both losses must be of the same function; restores the mode.
    Needs no memory beyond a forward pass. The train loss is the mean of all computed losses. ``on_step`` is called
    after each step with the number of steps done; an exception in it ends the training, with the weights displaced by
    ε. A loss that runs out of memory is recomputed with half
    the sequences per pass, and so are later ones.

    Raises ``training.non_finite``, and ``memory.exhausted`` if not even one sequence fits.
    """
    directions, walk = iter(seeds), _Walk(model, MicroBatches(config.batch_size))
    losses: list[float] = []
    slopes: list[float] = []
    examples = tokens = 0
    with inference(model):
        for step in range(1, config.steps + 1):
            group = list(islice(batches, config.accumulation))
            found: list[tuple[int, float]] = []
            for seed in islice(directions, config.perturbations):
                above, below = _look(walk, group, seed, config.epsilon)
                found.append((seed, _slope(above, below, step, config)))
                losses += above, below
            for seed, slope in found:
                walk.owe(seed, -config.learning_rate * slope / len(found))
                slopes.append(slope)
            examples += sum(len(batch.input_ids) for batch in group)
            tokens += sum(count_targets(batch) for batch in group)
            if on_step is not None:
                on_step(step)
        walk.arrive()
    return Descent(np.array(slopes, np.float32), LocalMetrics(math.fsum(losses) / len(losses), examples, tokens))


def move_along(model: nn.Module, steps: Mapping[int, float], rounding: int = 0) -> None:
    """Computes w ← w + Σ step · z(seed) in place, in the order of ``steps`` (by seed) and in one pass over the weights.

    The same bits on every device for any number of threads. ``rounding`` and errors are as in ``reconstruct_``.
    """
    parameters = trainable(model)
    device = next(iter(parameters.values())).device
    coefficients = -torch.tensor(list(steps.values()), device=device)
    terms = [Projected(seed, [c]) for seed, c in zip(steps, coefficients.split(1), strict=True)]
    reconstruct_(parameters, blocks_of(parameters, 1), basis("R"), terms, rounding)


class _Walk:
    """The model during the descent. Moves wait for the next loss, because each pass over the weights costs."""

    def __init__(self, model: nn.Module, fitting: MicroBatches) -> None:
        self.model = model
        self.fitting = fitting
        self._owed: defaultdict[int, float] = defaultdict(float)

    def owe(self, seed: int, step: float) -> None:
        """Defers w ← w + step · z(seed)."""
        self._owed[seed] += step

    def arrive(self) -> None:
        """Makes the deferred moves."""
        move_along(self.model, self._owed)
        self._owed.clear()


def _look(walk: _Walk, group: Sequence[Batch], seed: int, epsilon: float) -> tuple[float, float]:
    """Returns ℓ(w + εz) and ℓ(w − εz); the move back to w is deferred."""
    walk.owe(seed, epsilon)
    walk.arrive()
    above = walk.fitting.fit(partial(_mean_loss, walk.model, group))
    walk.owe(seed, -2 * epsilon)
    walk.arrive()
    below = walk.fitting.fit(partial(_mean_loss, walk.model, group))
    walk.owe(seed, epsilon)
    return above, below


def _mean_loss(model: nn.Module, group: Sequence[Batch], size: int) -> float:
    """Returns the mean loss per response token, as for one batch of all the group's sequences; ``size`` per pass."""
    losses = [response_loss(model, batch) for batch in micro_batches(group, size)]
    return sum(loss.nll.item() for loss in losses) / sum(loss.tokens for loss in losses)


def _slope(above: float, below: float, step: int, config: ZerothOrderConfig) -> float:
    """Returns ĝ as it is sent, in fp32."""
    slope = torch.tensor((above - below) / (2 * config.epsilon)).item()
    if not math.isfinite(slope):
        raise FerretError.of_field(
            "training.non_finite",
            "learning_rate",
            config.learning_rate,
            f"at local step {step} of {config.steps} the losses on either side are {above} and {below}: lower it, or "
            f"epsilon (now {config.epsilon}), or lower the server's learning rate",
        )
    return slope
