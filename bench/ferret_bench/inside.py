"""What it costs to look into a round's update, beside folding it.

The document holds ``machine``, ``threads`` (those of torch) and ``runs``, one per algorithm, on a model of random
weights with random updates of ``participants`` participants:

    fold_seconds    median over turns of one fold, the looking in it, without a guard's evaluations
    look_seconds    of that the looking: each contribution once as it goes by, and what is told in the end
    share           look_seconds over the rest of the fold

``bounds`` holds the largest share.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, final
from unittest import mock

import torch
from torch import nn

from ferret_bench._base import Document, Say, Table, shown
from ferret_bench._projection.llama import SMALL, TOY, Shape, random_llama
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.machine import machine
from ferret_core import catalog, federation
from ferret_core.algorithms._base import Client
from ferret_core.datasets._shard import Encoded, Shard
from ferret_core.fold import fold
from ferret_core.inside.observer import Observer
from ferret_core.models.load import LoadedModel
from ferret_core.models.parameters import trainable
from ferret_core.protocol.digest import digest_pieces
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.wire import FORMAT_VERSION, Contribution, ContributionMeta
from ferret_core.replica import Replica
from ferret_core.sealed import Sealed

PARTICIPANTS = 10
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ferret, own seeds": {"name": "ferret", "guard": False, "coordinates": "sign", "K": 65_536},
    "ferret, a shared seed": {
        "name": "ferret",
        "guard": False,
        "coordinates": "sign",
        "K": 65_536,
        "seeds": "shared",
        "allocation": "fixed",
    },
    "fedavg": {"name": "fedavg"},
}
LENGTH = 1e-3
"""RMS per weight of an update, far below that of the weights."""
MODEL = next(shape for shape in SMALL if shape.name == "LLaMA-110M")
TURNS = 3
BOUNDS = {"share": Bound("<", 0.5)}


@final
class Benchmark:
    """``ferret bench inside``"""

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 600.0) -> Document:
        begin = perf_counter()
        runs = [_run(name, TOY if quick else MODEL, say) for name in ALGORITHMS]
        return {
            "benchmark": "inside",
            "asked": {"bounds": bounds, "quick": quick, "max_seconds": max_seconds},
            "machine": machine(),
            "threads": torch.get_num_threads(),
            "runs": runs,
            "bounds": against(BOUNDS, {"share": max(run["share"] for run in runs)}),
            "seconds": perf_counter() - begin,
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        names = ("algorithm", "parameters", "participants", "fold_seconds", "look_seconds", "share")
        rows = [[shown(run[name]) for name in names] for run in document["runs"]]
        return [Table("a fold, and looking into it", names, rows), bound.table(document)]


class _Wanderer(Client):
    """Whose training is a random step of every weight."""

    def train(self, model: nn.Module, *_: Any, **__: Any) -> Any:
        generator = torch.Generator().manual_seed(self.task.seed >> 1)
        with torch.no_grad():
            for weight in trainable(model).values():
                weight.add_(torch.randn(weight.shape, generator=generator), alpha=LENGTH)
        return _Trained({})


class _Trained(NamedTuple):
    metrics: dict[str, float]


def _run(name: str, shape: Shape, say: Say) -> dict[str, Any]:
    say(f"{name}: {shape.name}, {shape.elements:,} parameters, {PARTICIPANTS} participants")
    spec = catalog.resolve(
        ExperimentSpec.model_validate(
            {
                "name": "inside",
                "rounds": 1,
                "model": {"source": "random"},
                "dataset": {"name": "jsonl", "train": "none.jsonl"},
                "participants": {"simulated": PARTICIPANTS},
                "algorithm": ALGORITHMS[name],
            }
        )
    )
    torch.manual_seed(0)
    replica = Replica(spec, LoadedModel(random_llama(shape, torch.device("cpu")), None))
    names = federation.client_names(PARTICIPANTS)
    tasks = federation.round_tasks(spec, SIMULATION, 1, names, replica.digest)
    sent = [_sealed(replica, task) for task in tasks]
    base = replica.standing()
    folds, looks = list[float](), list[float]()
    for _ in range(TURNS + 1):
        with _looking() as looking:
            begin = perf_counter()
            fold(replica, SIMULATION, sent)
            folds.append(perf_counter() - begin)
        looks.append(sum(looking))
        replica.restore(base)
    whole, look = median(folds[1:]), median(looks[1:])
    return {
        "algorithm": name,
        "model": shape.name,
        "parameters": shape.elements,
        "participants": PARTICIPANTS,
        "fold_seconds": whole,
        "look_seconds": look,
        "share": look / (whole - look),
    }


def _sealed(replica: Replica, task: RoundTask) -> Sealed:
    client = _Wanderer(task, Shard([Encoded([0], [0])], pad_id=0))
    update = replica.algorithm.local_update(replica.model, replica.state, client)
    meta = ContributionMeta(
        format=FORMAT_VERSION,
        experiment=SIMULATION,
        round=1,
        participant=task.participant,
        algorithm=replica.spec.algorithm.name,
        base_digest=task.base_digest,
        examples=1,
        **update.columns,
    )
    contribution = Contribution(meta, update.arrays)
    pieces = contribution.pieces()
    return Sealed(pieces, digest_pieces(pieces), contribution)


@contextmanager
def _looking() -> Generator[list[float]]:
    """The seconds of each call of what looks into updates."""
    seconds = list[float]()

    def timed(method: Any) -> Any:
        def call(*arguments: Any) -> Any:
            begin = perf_counter()
            try:
                return method(*arguments)
            finally:
                seconds.append(perf_counter() - begin)

        return call

    with mock.patch.multiple(Observer, see=timed(Observer.see), told=timed(Observer.told)):
        yield seconds
