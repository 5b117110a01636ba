"""The share of a round's gain that the projection's noise costs, along a run.

The experiment is run as it is, until the last probe. After 0, 4, 8, … rounds the next round's participants also train
for a probe. Δ is the mean of their updates at the server's rate, n the error of its reconstruction from K one-bit
coordinates of each of the N participants, and L the loss on examples that nobody trains on:

    gain  = L(w) − L(w − Δ)                                    of the round without noise
    cost  = E[L(w − Δ + n) + L(w − Δ − n)] / 2 − L(w − Δ)      of the noise
    share = cost / gain,   D = share · K N

The pair leaves the bend of the loss along n, which falls with K·N (docs/research/theory.md), and takes out the slope,
which has mean zero and scatters more than the cost. D is the number of one-bit coordinates, of all participants
together, with which the noise would cost all that the round gains; with 5 D it costs a fifth. A second number of
coordinates, an eighth of the first, checks that.

The document holds ``machine``, ``experiment`` (the specification, with the names of its files alone), ``model``,
``parameters``, ``participants``, ``seeds``, ``sequences`` and ``draws`` of the measurement, ``bytes`` that a
participant sends, and

    runs     by seed: what every probe measured
    points   by round: ``rate``; the number of ``seeds``; the mean ``gain``; and for each K the mean ``cost``,
             ``noise_percent`` of the weights, ``share``, ``dimension`` D with half of its 95 % interval (jackknife over
             the seeds), the number of seeds with ρ̂ at its cap (``capped``), and ``noise_ratio``, the mean ρ̂ of the
             others
    run      the same shares and D for the sums of gain and cost over the probed rounds, in runs that have them all
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple, final

from ferret_bench import base
from ferret_bench._noise_probe import Probe, Probes
from ferret_bench.base import Asked, Document, Say, Table, shown
from ferret_bench.measure.statistics import interval
from ferret_bench.reproduce.reruns.grid import without_folders
from ferret_cli import demo
from ferret_core import catalog
from ferret_core.algorithms.configs.ferret import Config
from ferret_core.catalog import ResolvedExperiment
from ferret_core.models import architecture
from ferret_core.models.shapes import count as elements
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import RoundResult, simulate

EVERY = 4
"""Rounds between two probes."""


class Effort(NamedTuple):
    """Runs with seeds in a row, draws of the noise in a probe, held-out examples for each loss, and the parts of K."""

    seeds: int
    draws: int
    sequences: int
    parts: tuple[int, ...]


FULL, QUICK = Effort(3, 1, 32, (1, 8)), Effort(1, 1, 16, (1,))
POINT = ("round", "rate", "gain", "K", "noise_percent", "cost", "share", "dimension", "dimension_half", "capped")


class _Enough(Exception):
    """The last probe is done, or the time limit is reached."""


class Ratio(NamedTuple):
    """Gains and costs of the same rounds, one of each for every seed, with ``coordinates`` K·N."""

    coordinates: int
    gains: Sequence[float]
    costs: Sequence[float]

    @property
    def share(self) -> float | None:
        """The mean cost over the mean gain; None if the rounds gain nothing without noise either."""
        gain = fmean(self.gains)
        return fmean(self.costs) / gain if gain > 0 else None

    @property
    def dimension(self) -> float | None:
        return None if (share := self.share) is None else share * self.coordinates

    @property
    def half(self) -> float | None:
        """Half of the 95 % interval of D; None with fewer than three seeds."""
        count, dimension = len(self.gains), self.dimension
        left_out = [Ratio(self.coordinates, _but(self.gains, seed), _but(self.costs, seed)) for seed in range(count)]
        found = [part.dimension for part in left_out if count > 2]
        if dimension is None or not found or None in found:
            return None
        spread = interval([count * dimension - (count - 1) * value for value in found if value is not None])
        return None if spread is None else spread.half

    @property
    def document(self) -> Document:
        return {"share": self.share, "dimension": self.dimension, "dimension_half": self.half}


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench noise [FILE]``: measures the demo's experiment by default."""

    def __init__(self, experiment: ExperimentSpec | None = None) -> None:
        self._experiment = experiment

    def measure(self, say: Say, asked: Asked) -> Document:
        with TemporaryDirectory(prefix="ferret-noise-") as folder:
            spec = measurable(self._experiment or demo.experiment_spec(demo.write_data(Path(folder))))
            effort, end = QUICK if asked.quick else FULL, perf_counter() + asked.max_seconds
            return {**_measured(spec, effort, end, say), "bounds": {}}

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        rows = [
            [shown({**point, **noisy}[name]) for name in POINT] for point in document["points"] for noisy in point["K"]
        ]
        return [Table(f"noise along {document['model']}'s run", POINT, rows)]


def measurable(experiment: ExperimentSpec) -> ExperimentSpec:
    """Returns ``experiment`` in fp32 with plain server steps, evaluated on the validation split after every round.

    Raises ``spec.invalid`` unless it is Ferret with one-bit coordinates on own seeds and the server's optimizer is SGD.
    """
    resolved = catalog.resolve(experiment)
    config, server = resolved.config, resolved.spec.server
    if (
        not isinstance(config, Config)
        or config.coordinates not in ("auto", "sign")
        or config.seeds != "own"
        or config.watches_steps
    ):
        message = (
            "the formula is that of one-bit coordinates on own seeds: set algorithm.name = 'ferret' and leave out "
        )
        raise FerretError.of_field(
            "spec.invalid", "algorithm.name", experiment.algorithm.name, f"{message}coordinates, seeds and allocation"
        )
    if server.optimizer != "sgd" or server.momentum:
        message = "noise that later rounds apply again is not measured: set it to 'sgd', without momentum"
        raise FerretError.of_field("spec.invalid", "server.optimizer", server.optimizer, message)
    tree = resolved.spec.model_dump(mode="json")
    tree["algorithm"]["coordinates"] = "sign"
    tree["model"]["dtype"] = "float32"
    tree["evaluation"] |= {"split": "validation", "every": 1, "generate_examples": 0}
    tree["stopping"] = {}
    tree["server"]["step_guard"] = False
    tree["participants"]["edge"] = 0
    tree["algorithm"]["refuse_noisy_rounds"] = False
    return ExperimentSpec.model_validate(tree)


def probed(rounds: int) -> list[int]:
    """Returns the numbers of rounds after which the next one is probed."""
    return [*range(0, rounds, EVERY)]


def _measured(spec: ExperimentSpec, effort: Effort, end: float, say: Say) -> Document:
    shapes = architecture.of_folder(spec.model.source).shapes
    config = ResolvedExperiment.of(spec).config
    assert isinstance(config, Config)
    K = config.total(config.cut(shapes))
    participants = spec.participants.sample_size(spec.participants.simulated)
    parts = [K // part for part in effort.parts]
    configs = [config.model_copy(update={"K": each, "bytes_per_round": None}) for each in parts]
    runs, sent = dict[int, list[Probe]](), 0.0
    for seed in range(spec.seed, spec.seed + effort.seeds):
        probes = Probes(probed(spec.rounds), configs, effort.sequences, effort.draws, say)
        sent = _run(spec.model_copy(update={"seed": seed}), probes, end) or sent
        runs[seed] = probes.found
        if perf_counter() > end:
            break
    return {
        "experiment": without_folders(spec),
        "model": Path(spec.model.source).name,
        "parameters": elements(shapes),
        "participants": participants,
        "seeds": list(runs),
        "sequences": effort.sequences,
        "draws": effort.draws,
        "bytes": sent,
        **summary(list(runs.values()), participants),
        "runs": {str(seed): [_document(probe) for probe in run] for seed, run in runs.items()},
    }


def _run(spec: ExperimentSpec, probes: Probes, end: float) -> float:
    """Runs the experiment until its last probe, or until the time is up. Returns the bytes that a participant sent in a
    round; 0 without a round.
    """
    sent = 0.0

    def note(done: RoundResult) -> None:
        nonlocal sent
        sent = done.bytes_up / len(done.accepted) if done.accepted else 0.0
        if probes.done or perf_counter() > end:
            raise _Enough

    with suppress(_Enough):
        simulate(spec, on_round=note, measure=probes)
    return sent


def summary(runs: Sequence[Sequence[Probe]], participants: int) -> Document:
    """Returns ``points`` and ``run`` from the probes of each seed; a run that was cut short counts as far as it got."""
    most = max(map(len, runs))
    probes = [[run[position] for run in runs if len(run) > position] for position in range(most)]
    whole = [run for run in runs if len(run) == most]
    return {"points": [point(each, participants) for each in probes], "run": _of_run(whole, participants)}


def point(probes: Sequence[Probe], participants: int) -> Document:
    """Returns the results of the same round of each seed's run."""
    gains = [probe.gain for probe in probes]
    noisy = []
    for position, (K, *_) in enumerate(probes[0].noisy):
        each = [probe.noisy[position] for probe in probes]
        ratio = Ratio(K * participants, gains, [one.cost for one in each])
        ratios = [one.noise_ratio for one in each if not one.capped]
        noisy.append(
            {
                "K": K,
                "noise_percent": fmean(one.percent for one in each),
                "cost": fmean(ratio.costs),
                **ratio.document,
                "noise_ratio": fmean(ratios) if ratios else None,
                "capped": len(each) - len(ratios),
            }
        )
    return {
        "round": probes[0].round,
        "rate": probes[0].rate,
        "seeds": len(probes),
        "gain": fmean(gains),
        "K": noisy,
    }


def _of_run(runs: Sequence[Sequence[Probe]], participants: int) -> list[Document]:
    """Returns, for each K, the share and D of all probes together."""
    gains = [sum(probe.gain for probe in run) for run in runs]
    found = list[Document]()
    for position, (K, *_) in enumerate(runs[0][0].noisy):
        costs = [sum(probe.noisy[position].cost for probe in run) for run in runs]
        found.append({"K": K, **Ratio(K * participants, gains, costs).document})
    return found


def _document(probe: Probe) -> Document:
    return {**probe._asdict(), "noisy": [each._asdict() for each in probe.noisy]}


def _but(values: Sequence[float], position: int) -> list[float]:
    return [*values[:position], *values[position + 1 :]]
