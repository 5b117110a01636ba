"""Noise of random directions in the weights, relative to the weights, with a limit.

A reconstruction is the update plus noise of mean zero (docs/concepts/projection.md). The noise's energy is a multiple
of the update's. So it is predicted before round 1, from the options and the expected norm of local training, and
measured in every round, from the norms in the contributions. With N participants and separate seeds,

    σ_l = a · √(Σᵢ (nᵢ / Σ nⱼ)² · ‖noiseᵢ,l‖² / d_l)

is the noise that a round of server rate a adds to every weight of block l. Under one shared seed all make the same
error, and the norms add up instead of their squares: an upper bound. The measure is σ_l over the RMS of the block's
weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ferret_core.algorithms.configs.norms import Norms
from ferret_core.algorithms.configs.traits import Projecting
from ferret_core.catalog import ResolvedExperiment, resolve
from ferret_core.models.shapes import Shapes, count
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, PluginChoice
from ferret_core.protocol.wire import Array
from ferret_core.server.schedule import noise_step, server_rate

if TYPE_CHECKING:
    from ferret_core.experiment.federated_data import FederatedData
    from ferret_core.replica.replica import Replica

MOST = 0.5
"""Maximum noise, relative to the weights' RMS: above it a round is refused. docs/results/size/size.md has runs on
either side.
"""
SHARE = 0.2
"""Largest share of a round's gain that the noise may cost by the advice."""
ADVISED = 0.05
"""Target of the advice, relative to the weights' RMS: noise that cost ``SHARE`` in docs/results/noise/noise.md."""
MOST_TIMES, MOST_PARTICIPANTS, MOST_SLOWED = 256, 1000, 20
"""Bounds of the advice: times the bytes, participants in a round, and how many times shorter steps become."""
WORK = frozenset({"steps", "epochs", "batch_size", "accumulation", "loss", "precision", "optimizer_in_backward"})
"""Local options that suit any optimizer."""
METRIC = "projection_noise"
SUMMED = 10_000


class ProjectionNoise(NamedTuple):
    """By block: its name, its number of weights, the RMS per weight of a round's noise, and the RMS of the weights."""

    blocks: tuple[str, ...]
    sizes: Array
    noise: Array
    weights: Array

    @property
    def ratios(self) -> Array:
        """fp64 (L,): noise over weights; 0 for a block of zero weights, in which noise is harmless."""
        return np.divide(self.noise, self.weights, out=np.zeros_like(self.noise), where=self.weights > 0)

    @property
    def total(self) -> float:
        """The root mean square of the ratio over all weights."""
        return float(np.sqrt((self.sizes * self.ratios**2).sum() / self.sizes.sum()))

    def metrics(self, *, by_block: bool) -> dict[str, float]:
        """Returns the noise in percent, of the whole model and of every block."""
        each = dict(zip(self.blocks, self.ratios.tolist(), strict=True)) if by_block else {}
        return {METRIC: 100 * self.total} | {f"{METRIC}/{name}": 100 * ratio for name, ratio in each.items()}


def expected(
    experiment: ResolvedExperiment, shapes: Shapes, weights: Sequence[float], examples: int | None
) -> ProjectionNoise | None:
    """Returns the noise of round 1; None without projection, or if the steps cannot be counted.

    ``weights`` is the RMS of the weights by block, ``examples`` the number per participant.
    """
    projection = experiment.traits.projection
    if projection is None or (projection.local.epochs is not None and examples is None):
        return None
    participants = participants_of(experiment.spec)
    norms = projection.expected_norms(shapes, examples)
    return measure(experiment, shapes, weights, [norms] * participants, [1 / participants] * participants, 1)


def accumulated(first: ProjectionNoise, experiment: ResolvedExperiment) -> float:
    """Returns the noise of all rounds together, relative to the weights' RMS, where round 1 adds ``first``.

    The errors of different rounds have mean zero and independent directions, so the variance of their sum is the sum of
    their variances (Bienaymé's identity; docs/projection.md shows the mean of zero):

        σ = σ₁ · √(Σ_r (s_r / s₁)²),  s_r = a_r η_r

    with the server's rate a_r and the local rate η_r of round r: a local update is as long as its rate, as in round 1.
    Server optimizers with a second moment make steps as long as a_r, so that s_r = a_r. It is exact up to
    ``SUMMED`` rounds, and beyond them the sum over evenly spaced ones.
    """
    spec, local = experiment.spec, _projection(experiment).local
    numbers = np.linspace(1, spec.rounds, min(spec.rounds, SUMMED)).round().astype(int).tolist()
    steps = [server_rate(spec.server, number, spec.rounds) for number in numbers]
    if spec.server.optimizer == "sgd":
        steps = [step * local.rate(number, spec.rounds) for step, number in zip(steps, numbers, strict=True)]
    squares = np.square(np.array(steps) / steps[0])
    return first.total * math.sqrt(spec.rounds * float(squares.mean()))


def of_base(replica: Replica, data: FederatedData) -> ProjectionNoise | None:
    """Returns the expected noise of round 1 from the base model, held by ``replica``."""
    return expected(replica.experiment, replica.shapes, replica.block_weights(), data.typical_examples)


def check_base(replica: Replica, data: FederatedData) -> None:
    """Raises ``noise.too_large`` if the first round would exceed the limit on the base model."""
    check(of_base(replica, data), replica.experiment, replica.shapes, "is expected to add")


def of_round(replica: Replica, norms: Sequence[Norms], shares: Sequence[float]) -> ProjectionNoise | None:
    """Returns the expected noise of the next round from contributions with these ``norms`` and weighted by ``shares``.

    Raises ``noise.too_large`` if it exceeds the limit.
    """
    experiment, shapes, number = replica.experiment, replica.shapes, replica.round + 1
    noise = measure(experiment, shapes, replica.block_weights(), norms, shares, number)
    check(noise, experiment, shapes, f"of round {number} would add")
    return noise


def measure(
    experiment: ResolvedExperiment,
    shapes: Shapes,
    weights: Sequence[float],
    norms: Sequence[Norms],
    shares: Sequence[float],
    round_number: int,
) -> ProjectionNoise | None:
    """Returns the noise of a round with contributions of these ``norms`` and ``shares``; None without projection."""
    spec, projection = experiment.spec, experiment.traits.projection
    if projection is None:
        return None
    blocks = projection.cut(shapes)
    sizes = np.array([block.size for block in blocks], np.float64)
    lengths = np.stack([share * each.noise for share, each in zip(shares, norms, strict=True)])
    together = lengths.sum(axis=0) if projection.seeds == "shared" else np.sqrt(np.square(lengths).sum(axis=0))
    rate = server_rate(spec.server, round_number, spec.rounds)
    moved = noise_step(spec.server, together / np.sqrt(sizes), rate)
    return ProjectionNoise(tuple(block.name for block in blocks), sizes, moved, np.array(weights))


def expected_share(noise: ProjectionNoise) -> float:
    """Returns the share of a round's gain that the noise is expected to cost. For an update of given length it grows
    with the square of the noise; docs/decisions/0067-one-criterion-for-noise.md has the measurements.
    """
    return SHARE * (noise.total / ADVISED) ** 2


def check(noise: ProjectionNoise | None, experiment: ResolvedExperiment, shapes: Shapes, when: str) -> None:
    """Raises ``noise.too_large`` if the noise is refused (:func:`exceeds_limit`).

    ``when`` names the round in the message, and the kind of figure, measured or expected.
    """
    if noise is None or not exceeds_limit(noise, experiment):
        return
    projection, participants = _projection(experiment), participants_of(experiment.spec)
    raise FerretError(
        "noise.too_large",
        f"the projection {when} noise of {noise.total:.0%} of the weights' RMS; at most {MOST:.0%} is let pass "
        f"(d = {count(shapes)}, K = {projection.total(projection.cut(shapes))}, {participants} participants). Use "
        f"{', or '.join(remedies(noise, experiment, shapes).values())}; server.step_guard = true goes only as far as "
        "the loss allows; algorithm.refuse_noisy_rounds = false lets it pass",
        members={"noise": noise.metrics(by_block=False)},
    )


def exceeds_limit(noise: ProjectionNoise, experiment: ResolvedExperiment) -> bool:
    """Returns True if the noise exceeds ``MOST`` of the weights, unless the algorithm accepts noisy rounds or the step
    guard limits the step by the noise's effect on the loss.
    """
    refuses = _projection(experiment).refuse_noisy_rounds and not experiment.spec.server.step_guard
    return refuses and noise.total > MOST


def remedies(noise: ProjectionNoise, experiment: ResolvedExperiment, shapes: Shapes) -> Mapping[str, str]:
    """Returns, by kind and the best first, changes that each lower the noise to ``ADVISED`` of the weights' RMS.

    The change of the optimizer has its own noise in its text. More participants do not help under a
    shared seed: their errors are the same. Values that nobody can afford, or with which nothing is
    learned, are left out; if no other is left, the rate is returned.
    """
    spec, projection = experiment.spec, _projection(experiment)
    factor = noise.total / ADVISED
    d, K = count(shapes), projection.total(projection.cut(shapes))
    found: dict[str, str] = {}
    other = _of_default_optimizer(experiment, shapes, noise)
    if other is not None and other < noise.total / 2:
        how = "leave out algorithm.local.optimizer and learning_rate"
        found["optimizer"] = f"the default optimizer, which adds {other:.1%} ({how})"
    if factor**2 * K < d and factor**2 <= MOST_TIMES:
        by_K = projection.K is not None
        name, value = ("K", projection.K) if by_K else ("bytes_per_round", projection.bytes_per_round)
        found["bytes"] = f"algorithm.{name} = {_up(factor**2 * (value or 0))}"
    rate = f"algorithm.local.learning_rate = {_down(projection.local.learning_rate / factor)}"
    if factor <= MOST_SLOWED:
        found["rate"] = rate
    participants = _up(factor**2 * participants_of(spec))
    if projection.seeds != "shared" and participants <= MOST_PARTICIPANTS:
        found["participants"] = f"{participants} participants in a round"
    if factor <= MOST_SLOWED:
        found["server"] = f"server.learning_rate = {_down(spec.server.learning_rate / factor)}"
    return found or {"rate": rate}


def _of_default_optimizer(experiment: ResolvedExperiment, shapes: Shapes, noise: ProjectionNoise) -> float | None:
    """Returns the noise of round 1 with the algorithm's default optimizer; None if that cannot be computed, or for an
    experiment with this optimizer.
    """
    algorithm = experiment.spec.algorithm
    local = _projection(experiment).local.model_dump()
    kept = {name: value for name, value in local.items() if name in WORK and value is not None}
    choice = PluginChoice.model_validate({**algorithm.model_dump(), "local": kept})
    try:
        changed = resolve(experiment.spec.model_copy(update={"algorithm": choice}))
        if _projection(changed).local.optimizer == _projection(experiment).local.optimizer:
            return None
        found = expected(changed, shapes, noise.weights.tolist(), None)
    except FerretError:
        return None
    return None if found is None else found.total


def _projection(experiment: ResolvedExperiment) -> Projecting:
    """Returns the projection, which exists whenever there is noise."""
    assert experiment.traits.projection is not None
    return experiment.traits.projection


def participants_of(spec: ExperimentSpec) -> int:
    """Returns the number of participants averaged in a round's update."""
    return spec.participants.sample_size(spec.participants.simulated + spec.participants.edge)


def _up(value: float) -> int:
    """Rounds up to two digits."""
    step = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return math.ceil(value / step) * step


def _down(value: float) -> str:
    """Rounds down to two digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / step) * step:.2g}"
