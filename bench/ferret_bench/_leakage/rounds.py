"""Contributions of simulated sites, and the updates that can be rebuilt from them and from their sums.

All rows train alike: the sites train once, and each algorithm seals the same result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from ferret_bench._leakage.attack import flat
from ferret_core import catalog
from ferret_core.aggregation.masked_sum import sum_in_process
from ferret_core.algorithms._dense import apply_dense
from ferret_core.algorithms.base import Client
from ferret_core.catalog import ResolvedExperiment
from ferret_core.client.local_round import contribute
from ferret_core.contribution import SealedContribution
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.datasets.tokenization.tokenize import shard_of
from ferret_core.models.load import LoadedModel
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.secure.in_process import Members
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import LocalMetrics

BATCH = 4
"""Texts in a local step."""
LEAST, COLLUDERS = 3, 1
"""Settings of a secure sum: its survivors, and the participants that may collude with the server."""


class Row(NamedTuple):
    """A way to send an update: ``sites`` is 1 for a contribution, else the size of the sum that is read. ``bytes``
    count a site's coordinates, None for whole updates. ``masked``: a secure sum; else a mean of contributions.
    """

    algorithm: str
    bytes: int | None = None
    seeds: str | None = None
    sites: int = 1
    masked: bool = False

    def options(self) -> dict[str, Any]:
        """Returns the options of the algorithm without local training."""
        if self.bytes is None:
            return {"name": self.algorithm}
        shared = {"seeds": "shared", "allocation": "fixed"} if self.seeds == "shared" else {}
        K = 8 * self.bytes // self.sites.bit_length() if self.masked else None
        budget = {"K": K} if K else {"bytes_per_round": self.bytes}
        return {"name": self.algorithm, "refuse_noisy_rounds": False, **budget, **shared}


class Deal(NamedTuple):
    """Texts, none twice: the attacker's, the ones that no site has, and each site's."""

    public: list[Encoded]
    outside: list[Encoded]
    sites: list[list[Encoded]]

    @property
    def inside(self) -> list[Encoded]:
        return [text for texts in self.sites for text in texts]


class Trained(Client):
    """A client with its training done: ``memory`` holds its ``update``."""

    __slots__ = ()

    def train(self, model: nn.Module, config: LocalConfig, correct: Any = None, moved: Any = None) -> LocalMetrics:
        apply_dense(model, self.memory["update"], 1.0, 0)
        return LocalMetrics(0.0, 1, 1)


class Round:
    """Round 1 of an experiment: the sites train on ``shards`` for ``steps`` steps. Their updates are kept in files in
    ``folder``: ten of a large model do not fit into memory."""

    def __init__(
        self,
        spec: ExperimentSpec,
        loaded: LoadedModel,
        shards: Sequence[Sequence[Encoded]],
        steps: int,
        folder: Path,
    ) -> None:
        self._spec, self._loaded, self._steps = spec, loaded, steps
        self._shards = {
            name: ClientData(shard, 0) for name, shard in zip(sampling.client_names(len(shards)), shards, strict=True)
        }
        replica = self._replica(Row("fedavg"))
        self._memories = {
            name: _in_files(contribute(replica, Client(task, self._shards[name])).sealed, folder)
            for name, task in self._tasks(replica).items()
        }

    def rebuilt(self, row: Row) -> Iterator[Tensor]:
        """Yields the update, fp32 (d,), of each contribution for a row of one site, and else of each secure sum; a mean
        of contributions is the mean of their updates."""
        names = list(self._shards)
        size = row.sites if row.masked else 1
        replica = self._replica(row)
        tasks = self._tasks(replica)
        for group in groups(len(names), size):
            sealed = {name: self._seal(replica, tasks[name], name) for name in (names[site] for site in group)}
            if row.masked:
                task, members = tasks[names[group[0]]], Members(LEAST, COLLUDERS)
                sealed = {"": sum_in_process(replica, members, task, 1, list(sealed), sealed).sealed}
            yield flat(replica.displacement(list(sealed.values())))

    def _seal(self, replica: Replica, task: Any, name: str) -> SealedContribution:
        return contribute(replica, Trained(task, self._shards[name], self._memories[name])).sealed

    def _replica(self, row: Row) -> Replica:
        return Replica(row_spec(self._spec, row, self._steps, len(self._shards), 1), self._loaded)

    def _tasks(self, replica: Replica) -> Mapping[str, Any]:
        names = list(self._shards)
        found = sampling.round_tasks(replica.spec, SIMULATION, 1, names, replica.digest)
        return dict(zip(names, found, strict=True))


def _in_files(sealed: SealedContribution, folder: Path) -> dict[str, np.ndarray]:
    """Writes the arrays of a contribution to ``folder``, and returns them mapped from there."""
    files = {name: folder / f"{sealed.digest}-{name}.npy" for name in sealed.contribution.arrays}
    for name, array in sealed.contribution.arrays.items():
        np.save(files[name], array)
    return {name: np.load(file, mmap_mode="c") for name, file in files.items()}


def groups(sites: int, size: int) -> list[range]:
    """Returns the sites of each sum of ``size``; the rest of the sites is left out."""
    return [range(first, first + size) for first in range(0, sites - size + 1, size)]


def row_spec(spec: ExperimentSpec, row: Row, steps: int, sites: int, rounds: int) -> ExperimentSpec:
    """Returns ``spec`` with the row's algorithm and the same local optimizer.

    Raises ``spec.invalid`` for an algorithm without first-order steps.
    """
    local = ResolvedExperiment.of(spec).traits.first_order
    if local is None:
        message = "has no local steps of a first-order optimizer: choose ferret or fedavg"
        raise FerretError.of_field("spec.invalid", "algorithm.name", spec.algorithm.name, message)
    tree = spec.model_dump(mode="json")
    taught = local.model_dump(mode="json") | {"steps": steps, "epochs": None, "batch_size": BATCH, "accumulation": 1}
    tree["algorithm"] = row.options() | {"local": taught}
    tree["rounds"] = rounds
    tree["participants"] |= {"simulated": sites, "edge": 0, "fraction": 1.0}
    tree["server"] |= {"step_guard": False, "weights": "equal"}
    return catalog.resolve(ExperimentSpec.model_validate(tree)).spec


def deal(
    spec: ExperimentSpec, loaded: LoadedModel, context: int, counts: Sequence[int], seed: int
) -> list[list[Encoded]]:
    """Deals random training texts of the dataset into parts of these sizes, none twice.

    Raises ``dataset.invalid`` for a dataset with too few.
    """
    texts = list({example[:3]: example for example in catalog.dataset(spec.dataset).train()}.values())
    if len(texts) < sum(counts):
        message = f"has {len(texts)} different training texts, and {sum(counts)} are needed: choose a larger one"
        raise FerretError.of_field("dataset.invalid", "dataset.name", spec.dataset.name, message)
    order = np.random.default_rng(seed).permutation(len(texts))[: sum(counts)].tolist()
    shard = shard_of([texts[index] for index in order], loaded.tokenizer, context, spec.prompt.template).examples
    ends = np.cumsum(counts).tolist()
    return [list(shard[end - count : end]) for end, count in zip(ends, counts, strict=True)]
