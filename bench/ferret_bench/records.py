"""The loss under record-level privacy: Ferret, and FedAvg with the same ε.

An experiment that protects examples is run as it is, and with FedAvg in place of the projection. FedAvg's participants
draw as many units by secret coins, sum the directions of their gradients, add Gaussian noise to every weight, and take
one step (DP-SGD by Abadi et al. 2016, https://arxiv.org/abs/1607.00133, with gradients of length one). The sensitivity
of both sums is a unit's length, so the noise multiplier and ε are the same. FedAvg without noise shows the price of
privacy.

Each method is tried once with each rate on the validation split. The best rate is repeated with several seeds on the
test split.

The document holds ``machine``, ``experiment`` (the specification, with the names of its files alone), ``model``,
``parameters``, ``noise_multiplier``, ``useful`` (K*), and

    trials  for each method and rate: the loss after the last round, on the validation split; None if it diverged
    runs    for each method and seed at the best rate: ``bytes`` that a participant sends in a round, and the ``losses``
            on the test split after rounds 0, 1, …
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple, final

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from ferret_bench import base
from ferret_bench._leakage.attack import flat
from ferret_bench.base import Asked, Document, Say, Table, shown
from ferret_bench.reproduce.reruns.grid import without_folders
from ferret_cli import demo
from ferret_core import catalog
from ferret_core.aggregation.projection_noise import participants_of
from ferret_core.algorithms.base import Client
from ferret_core.client.local_round import LocalRound, contribute
from ferret_core.models import architecture
from ferret_core.models.parameters import trainable
from ferret_core.models.shapes import count as elements
from ferret_core.privacy.mechanism import RecordMechanism, RecordPrivacy, calibrated, units_of
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.simulate import SimulationResult, simulate
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import LocalMetrics
from ferret_core.training.unit_gradients import unit_gradients

FERRET, FEDAVG, UNPROTECTED = "ferret", "fedavg", "fedavg_without_noise"
METHODS = (FERRET, FEDAVG, UNPROTECTED)


class Effort(NamedTuple):
    """The learning rates to try, and the seeds of the repeated runs."""

    rates: Sequence[float]
    seeds: int


FULL, QUICK = Effort((0.1, 0.2, 0.4, 0.8), 3), Effort((0.1,), 1)


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench records [FILE]``: measures the demo's model and texts by default."""

    def __init__(self, experiment: ExperimentSpec | None = None) -> None:
        self._experiment = experiment

    def measure(self, say: Say, asked: Asked) -> Document:
        with TemporaryDirectory(prefix="ferret-records-") as folder:
            spec = measurable(self._experiment or _protected_demo(Path(folder)))
            return {**_measured(spec, QUICK if asked.quick else FULL, asked.max_seconds, say), "bounds": {}}

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        trials = [[trial["method"], trial["rate"], shown(trial["loss"])] for trial in document["trials"]]
        runs = [[run[name] for name in ("method", "seed", "rate", "bytes")] + _ends(run) for run in document["runs"]]
        return [
            Table("on the validation split", ["method", "rate", "loss"], trials),
            Table("on the test split", ["method", "seed", "rate", "bytes", "loss before", "loss after"], runs),
        ]


class DpSgdClient(Client):
    """A FedAvg client that takes one step of DP-SGD: the sum of the directions of its units' gradients, with noise."""

    __slots__ = ()

    def train(self, model: nn.Module, config: LocalConfig, correct: Any = None, moved: Any = None) -> LocalMetrics:
        record = self.record
        assert record is not None
        weights = list(trainable(model).values())
        total = torch.zeros(sum(map(torch.numel, weights)))
        for gradients in unit_gradients(model, self.shard, record.draw(), config, self.task.data_seed):
            gradient = flat(gradients)
            if norm := torch.linalg.vector_norm(gradient).item():
                total += gradient / norm
        total += torch.randn(len(total)) * record.mechanism.deviation(1)
        rate = config.rate(self.task.round, self.task.rounds)
        with torch.no_grad():
            vector_to_parameters(parameters_to_vector(weights) - rate / record.mechanism.batch * total, weights)
        return LocalMetrics(0.0, 1, 1)


def measurable(experiment: ExperimentSpec) -> ExperimentSpec:
    """Returns ``experiment``, calibrated, with simulated participants alone, who all take part in every round, and with
    the loss as the only metric.

    Raises ``spec.invalid`` unless it protects examples.
    """
    spec = catalog.resolve(experiment).spec
    if spec.privacy.unit != "example":
        message = "the benchmark compares algorithms that protect examples: set it to 'example'"
        raise FerretError.of_field("spec.invalid", "privacy.unit", spec.privacy.unit, message)
    tree = spec.model_dump(mode="json")
    tree["model"]["dtype"] = "float32"
    tree["evaluation"] |= {"every": 1, "generate_examples": 0}
    tree["stopping"] = {}
    tree["server"] |= {"step_guard": False, "weights": "equal"}
    tree["participants"] |= {"edge": 0, "fraction": 1.0}
    return calibrated(ExperimentSpec.model_validate(tree), spec.participants.simulated)


def _protected_demo(folder: Path) -> ExperimentSpec:
    """Returns a few rounds of the demo's tasks under record-level privacy, with an ε as large as so few allow."""
    tree = demo.experiment_spec(demo.write_data(folder)).model_dump(mode="json", exclude_unset=True)
    local = {"optimizer": "normalized", "steps": 1, "batch_size": 1, "accumulation": 1}
    ferret = {"name": "ferret", "K": 1000, "seeds": "shared", "allocation": "fixed", "coordinates": "float32"}
    tree["algorithm"] = ferret | {"refuse_noisy_rounds": False, "local": local}
    tree["privacy"] = {"unit": "example", "epsilon": 60.0, "delta": 1e-5, "batch": 40, "records_least": 600}
    tree["secure"] = {"aggregation": "masked", "least": 3, "colluders": 1}
    tree["participants"] = {"simulated": 4}
    tree["partition"] = {"name": "iid"}
    tree["rounds"] = 2
    tree["evaluation"]["examples"] = 32
    return ExperimentSpec.model_validate(tree)


def _measured(spec: ExperimentSpec, effort: Effort, max_seconds: float, say: Say) -> Document:
    begin = perf_counter()
    trials, runs = list[dict[str, Any]](), list[dict[str, Any]]()
    for method in METHODS:
        for rate in effort.rates:
            trials.append({"method": method, "rate": rate, "loss": _tried(spec, method, rate)})
            say(f"{method}, rate {rate:g}: validation loss {trials[-1]['loss']}, {perf_counter() - begin:.0f} s")
    for seed in range(spec.seed, spec.seed + effort.seeds):
        for method in METHODS:
            rate = best(trials, method)
            found = run(spec.model_copy(update={"seed": seed}), method, rate, "test")
            last, losses = found.rounds[-1], _losses(found)
            runs.append({"method": method, "seed": seed, "rate": rate, "bytes": last.bytes_up / len(last.accepted)})
            runs[-1]["losses"] = losses
            say(f"{method}, seed {seed}: test loss {losses[0]:.4f} → {losses[-1]:.4f}, {perf_counter() - begin:.0f} s")
        if perf_counter() - begin > max_seconds:
            break
    mechanism = RecordMechanism.of(spec, participants_of(spec))
    return {
        "experiment": without_folders(spec),
        "model": Path(spec.model.source).name,
        "parameters": elements(architecture.of_folder(spec.model.source).shapes),
        "noise_multiplier": mechanism.noise_multiplier,
        "useful": mechanism.useful,
        "trials": trials,
        "runs": runs,
    }


def run(spec: ExperimentSpec, method: str, rate: float, split: str) -> SimulationResult:
    """Runs a calibrated ``spec`` in one of the ``METHODS``, evaluated on ``split``."""
    tree = spec.model_dump(mode="json")
    tree["algorithm"]["local"]["learning_rate"] = rate
    tree["evaluation"]["split"] = split
    if method == FERRET:
        return simulate(ExperimentSpec.model_validate(tree))
    tree["algorithm"] = {"name": "fedavg", "local": tree["algorithm"]["local"]}
    del tree["privacy"]
    tree["secure"]["aggregation"] = "none"
    mechanism = RecordMechanism.of(spec, participants_of(spec))
    mechanism = mechanism if method == FEDAVG else mechanism._replace(noise_multiplier=0.0)
    return simulate(ExperimentSpec.model_validate(tree), participate=partial(_step, spec, mechanism))


def _step(spec: ExperimentSpec, mechanism: RecordMechanism, replica: Replica, client: Client) -> LocalRound:
    record = RecordPrivacy(mechanism, units_of([""] * len(client.shard), spec))
    return contribute(replica, DpSgdClient(**client._replace(record=record)._asdict()))


def _tried(spec: ExperimentSpec, method: str, rate: float) -> float | None:
    """Returns the validation loss after the last round; None if the run diverged."""
    try:
        return _losses(run(spec, method, rate, "validation"))[-1]
    except FerretError as error:
        if error.code not in {"training.non_finite", "contribution.non_finite"}:
            raise
        return None


def best(trials: Sequence[Mapping[str, Any]], method: str) -> float:
    """Returns the rate with the least loss."""
    finite = [trial for trial in trials if trial["method"] == method and trial["loss"] is not None]
    return min(finite, key=itemgetter("loss"))["rate"]


def _losses(found: SimulationResult) -> list[float]:
    return [done.metrics["eval_loss"] for done in found.rounds]


def _ends(run: Mapping[str, Any]) -> list[Any]:
    return [shown(run["losses"][0]), shown(run["losses"][-1])]
