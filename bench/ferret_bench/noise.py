"""The projection's noise that a model tolerates: the guard's ρ̂ at two numbers of coordinates, in one experiment.

Round 1 of the experiment is run with its K and with a part of it, with the same updates of the same N participants:

    1 + ρ̂(K) = A · (1 + D / (K N)),   D = (π/2) r

A is the ratio of a round without noise: above 1 its step is too long, below 1 too short. r is the number of
dimensions in which the loss feels the noise: the noise of K·N = D one-bit coordinates bends the loss along the step as
much as the update itself does, and halves what the best step gains. d, the number of all weights, is not in it. See
docs/theory.md for where the formula comes from.

The document holds ``machine``, ``experiment`` (its ``model``, ``parameters``, ``participants``) and

    points       for each K: ``bytes`` that a participant sends, and ``noise_ratio`` for each seed
    dimension    D, with ``dimension_half``: half of its 95 % interval, by leaving out each seed in turn (jackknife)
    clean        A
    bytes        of the coordinates that each of the N participants sends where K N = D; ``bytes_alone`` for N = 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple, final

from ferret_bench import base
from ferret_bench.base import Asked, Document, Say, Table, shown
from ferret_bench.measure.statistics import interval
from ferret_cli import demo
from ferret_core import catalog
from ferret_core.catalog import ResolvedExperiment
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.models import architecture
from ferret_core.models.shapes import count as elements
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.simulate import simulate

PART = 8
"""The first K is this fraction of the second."""
SEEDS = 8
DEVELOPMENT = 32
"""Sequences that the guard measures a round on: more than in practice, because this is about the figure itself."""
FOLLOWED = 1e6
"""A rise of the loss that no round reaches: each is applied in full, and only measured."""
POINT = ("K", "bytes", "mean")
FOUND = ("model", "parameters", "participants", "dimension", "dimension_half", "clean", "bytes", "bytes_alone")


class Points(NamedTuple):
    """``few`` and ``many``: ρ̂ of the same seeds at K = ``K[0]`` and at ``K[1]``."""

    K: tuple[int, int]
    participants: int
    few: Sequence[float]
    many: Sequence[float]

    def without(self, seed: int) -> Points:
        return self._replace(few=_but(self.few, seed), many=_but(self.many, seed))


@final
class Benchmark(base.Benchmark):
    """``ferret bench noise [FILE]``: measures the demo's experiment by default."""

    def __init__(self, experiment: ExperimentSpec | None = None) -> None:
        self._experiment = experiment

    def measure(self, say: Say, asked: Asked) -> Document:
        with TemporaryDirectory(prefix="ferret-noise-") as folder:
            spec = one_round(self._experiment or demo.experiment_spec(demo.write_data(Path(folder))))
            seeds, end = 2 if asked.quick else SEEDS, perf_counter() + asked.max_seconds
            return {**_measured(spec, seeds, end, say), "bounds": {}}

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        points = [[shown(point[name]) for name in POINT] for point in document["points"]]
        return [
            Table("noise over progress", POINT, points),
            Table("how many bytes", FOUND, [[shown(document[name]) for name in FOUND]]),
        ]


def one_round(experiment: ExperimentSpec) -> ExperimentSpec:
    """Round 1 of ``experiment`` with the step guard on and without participants at the edge.

    Raises ``spec.invalid`` unless its algorithm is ``ferret`` with one-bit coordinates.
    """
    projection = ResolvedExperiment.of(experiment).traits.projection
    if projection is None or projection.coordinates != "sign":
        message = "the formula is that of one-bit coordinates: set algorithm.name = 'ferret', coordinates = 'sign'"
        raise FerretError.of_field("spec.invalid", "algorithm.name", experiment.algorithm.name, message)
    tree = catalog.resolve(experiment).spec.model_dump(mode="json")
    tree["rounds"] = 1
    tree["server"] |= {"step_guard": True, "max_loss_rise": FOLLOWED, "development_examples": DEVELOPMENT}
    tree["participants"]["edge"] = 0
    tree["algorithm"]["refuse_noisy_rounds"] = False
    return ExperimentSpec.model_validate(tree)


def dimension(points: Points) -> tuple[float, float]:
    """D and A of the formula above, from the means over the seeds."""
    few, many = 1 + fmean(points.few), 1 + fmean(points.many)
    slope = (few - many) / (1 / points.K[0] - 1 / points.K[1])
    clean = many - slope / points.K[1]
    return points.participants * slope / clean, clean


def half_interval(points: Points) -> float | None:
    """Returns half of the 95 % interval of D, or None with fewer than three seeds."""
    count = len(points.few)
    if count < 3:
        return None
    left_out = [dimension(points.without(seed))[0] for seed in range(count)]
    spread = interval([count * dimension(points)[0] - (count - 1) * value for value in left_out])
    return None if spread is None else spread.half


def _measured(spec: ExperimentSpec, seeds: int, end: float, say: Say) -> Document:
    projection = ResolvedExperiment.of(spec).traits.projection
    assert projection is not None
    shapes = architecture.of_folder(spec.model.source).shapes
    K = projection.total(projection.cut(shapes))
    points = Points((max(1, K // PART), K), sampling.sample_size(spec, spec.participants.simulated), [], [])
    sent: dict[int, float] = {}
    for seed in range(spec.seed, spec.seed + seeds):
        few, many = (_round_one(spec, seed, count, sent) for count in points.K)
        points = points._replace(few=[*points.few, few], many=[*points.many, many])
        say(f"seed {seed}: noise over progress {few:.3g} with {points.K[0]:,} coordinates, {many:.3g} with {K:,}")
        if perf_counter() > end:
            break
    found, clean = dimension(points)
    each = found / points.participants / 8
    return {
        "model": Path(spec.model.source).name,
        "parameters": elements(shapes),
        "participants": points.participants,
        "points": [
            {"K": count, "bytes": sent[count], "noise_ratio": list(values), "mean": fmean(values)}
            for count, values in zip(points.K, (points.few, points.many), strict=True)
        ],
        "dimension": found,
        "dimension_half": half_interval(points),
        "clean": clean,
        "bytes": each,
        "bytes_alone": each * points.participants,
    }


def _round_one(spec: ExperimentSpec, seed: int, K: int, sent: dict[int, float]) -> float:
    tree = spec.model_dump(mode="json")
    tree["seed"] = seed
    tree["algorithm"] |= {"K": K, "bytes_per_round": None}
    done = simulate(ExperimentSpec.model_validate(tree), measure=_nothing).rounds[-1]
    sent[K] = done.bytes_up / len(done.accepted)
    return done.metrics["noise_ratio"]


def _nothing(replica: Replica, data: FederatedData) -> dict[str, float]:
    """Skips the evaluation: the guard measures everything needed."""
    return {}


def _but(values: Sequence[float], position: int) -> list[float]:
    return [*values[:position], *values[position + 1 :]]
