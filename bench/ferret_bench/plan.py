"""The seconds that ``ferret plan`` predicts for an experiment, over the seconds that its rounds take.

The document holds ``machine``, ``experiment`` (the specification, with the names of its files alone), ``load`` (the
machine's load average before and after), and for each of training, evaluation and aggregation ``predicted`` and
``measured`` seconds and the ``ratio`` of the first to the second. Measured are the means over rounds 2 and later; an
evaluation has no answers unless the specification asks for them. Participants from the edge are simulated as well.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, final

from ferret_bench import base
from ferret_bench.base import Asked, Document, Say, Table, shown
from ferret_bench.reproduce.reruns.grid import without_folders
from ferret_cli import demo
from ferret_cli.estimate_output import lengths_of, on_this_machine, speed_of
from ferret_core import catalog
from ferret_core.catalog import ResolvedExperiment
from ferret_core.experiment.estimate import estimate
from ferret_core.experiment.federated_data import FederatedData
from ferret_core.models import architecture
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.simulate import measured, simulate

ROUNDS = 3
COLUMNS = ("part", "predicted", "measured", "ratio")


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench plan [FILE]``: the demo's experiment by default."""

    def __init__(self, experiment: ExperimentSpec | None = None) -> None:
        self._experiment = experiment

    def measure(self, say: Say, asked: Asked) -> Document:
        with TemporaryDirectory(prefix="ferret-plan-") as folder:
            spec = self._experiment or demo.experiment_spec(demo.write_data(Path(folder)))
            participants = spec.participants.model_copy(
                update={"simulated": spec.participants.simulated + spec.participants.edge, "edge": 0}
            )
            rounds = 2 if asked.quick else ROUNDS
            spec = spec.model_copy(update={"participants": participants, "rounds": rounds})
            experiment = on_this_machine(catalog.resolve(spec))
            before = os.getloadavg()[0]
            say("measuring the machine's speed")
            expected = _predicted(experiment)
            say("running the rounds")
            found = _measured(experiment.spec)
            return {
                "experiment": without_folders(experiment.spec),
                "load": [before, os.getloadavg()[0]],
                "parts": [
                    {
                        "part": part,
                        "predicted": expected[part],
                        "measured": found[part],
                        "ratio": expected[part] / found[part],
                    }
                    for part in found
                ],
                "bounds": {},
            }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        rows = [[shown(part[name]) for name in COLUMNS] for part in document["parts"]]
        return [Table("seconds of a plan and of its run", COLUMNS, rows)]


def _predicted(experiment: ResolvedExperiment) -> dict[str, float]:
    outline = architecture.of_folder(experiment.spec.model.source)
    lengths = lengths_of(experiment, outline, None)
    plan = estimate(experiment, outline, None, lengths, speed_of(experiment, outline, lengths))
    assert plan.local_seconds is not None, "an experiment by steps"
    return {
        "training": plan.local_seconds,
        "evaluation": plan.evaluate_seconds,
        "aggregation": plan.aggregate_seconds,
    }


def _measured(spec: ExperimentSpec) -> dict[str, float]:
    evaluations: list[float] = []

    def timed(replica: Replica, data: FederatedData) -> dict[str, float]:
        begin = perf_counter()
        found = measured(replica, data)
        evaluations.append(perf_counter() - begin)
        return found

    costs = [done.cost for done in simulate(spec, measure=timed).rounds[2:]]
    return {
        "training": fmean(cost["local_seconds"] for cost in costs),
        "evaluation": fmean(evaluations[1:]),
        "aggregation": fmean(cost["aggregate_seconds"] for cost in costs),
    }
