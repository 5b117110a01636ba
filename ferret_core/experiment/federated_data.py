"""Data of one experiment: every simulated client's shard, and the held-out examples of the evaluated split."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import median
from typing import Any, NamedTuple

from ferret_core import catalog
from ferret_core.datasets._validation_split import (
    choose_development,
    require_apart,
    without_development,
    without_validation,
)
from ferret_core.datasets.base import Example, FederatedDataset, NamesUnits
from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.datasets.tokenization.tokenize import shard_of
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.rounds.sampling import client_names

KEPT_SHARDS = 16


class FederatedSplit(NamedTuple):
    """The examples as the specification deals them out: ``clients`` holds indices into ``train`` by client's name.

    ``held_out`` has the evaluation's examples, from the split ``evaluation.split``. ``development`` has the examples
    that measure rounds before they count, if the server requests any; no client trains on them.
    """

    train: Sequence[Example]
    held_out: Sequence[Example]
    clients: dict[str, list[int]]
    development: Sequence[Example] = ()


def deal(spec: ExperimentSpec) -> FederatedSplit:
    """Loads the dataset and splits it; without simulated clients nothing is read but what the held-out examples need.

    Raises ``dataset.invalid`` for unreadable data and ``partition.invalid`` if they cannot be split as requested.
    """
    source = _source(spec)
    names, evaluation, development = client_names(spec.participants.simulated), spec.evaluation, list[Example]()
    if evaluation.split == "validation":
        train, held_out = without_validation(source, evaluation.validation_share)
    else:
        train, held_out = source.train() if names else [], source.test()
    wanted = catalog.ResolvedExperiment.of(spec).traits.public_examples
    if spec.server.step_guard or wanted:
        aside = (
            held_out if evaluation.split == "validation" else without_validation(source, evaluation.validation_share)[1]
        )
        public = choose_development(aside, wanted, "algorithm.public_examples") if wanted else []
        if spec.server.step_guard:
            development = choose_development(aside, spec.server.development_examples)
        if evaluation.split == "validation":
            held_out = without_development(held_out, [*development, *public])
        train = without_development(train, [*development, *public])
        require_apart(development, held_out)
        require_apart(public, held_out, "algorithm.public_examples")
    if not names:
        return FederatedSplit([], held_out, {}, development)
    units = _units(train)
    labels = [train[unit[0]].label for unit in units]
    dealt = catalog.partition(spec.partition).split(labels, len(names), derive_seed(spec.seed, "partition"))
    shards = [[index for unit in shard for index in units[unit]] for shard in dealt]
    return FederatedSplit(train, held_out, dict(zip(names, shards, strict=True)), development)


def _source(spec: ExperimentSpec) -> FederatedDataset:
    """Returns the dataset, with the unit of each example if the experiment protects units by a field."""
    source = catalog.dataset(spec.dataset)
    if spec.privacy.field is None:
        return source
    if not isinstance(source, NamesUnits):
        message = f"the dataset {spec.dataset.name} has no such field: use 'example', or a jsonl file with the field"
        raise FerretError.of_field("privacy.unit_missing", "privacy.unit", spec.privacy.unit, message)
    return source.with_units(spec.privacy.field)


def _units(examples: Sequence[Example]) -> list[list[int]]:
    """Returns the positions of the examples that one client gets together: a unit's, or one example."""
    by_unit = dict[str | int, list[int]]()
    for index, example in enumerate(examples):
        by_unit.setdefault(example.unit or index, []).append(index)
    return list(by_unit.values())


class FederatedData:
    """Deals the dataset out once, and tokenises a shard on request; raises as :func:`deal` does."""

    def __init__(self, spec: ExperimentSpec, tokenizer: Any, context: int) -> None:
        self._dealt = deal(spec)
        self._tokenizer = tokenizer
        self._context = context
        self._prompt = spec.prompt
        self.held_out = self._dealt.held_out
        self.development = self._dealt.development
        self.shard = lru_cache(maxsize=KEPT_SHARDS)(self._shard)

    @property
    def typical_examples(self) -> int | None:
        """The median number of examples of a simulated client; None without any."""
        sizes = [len(indices) for indices in self._dealt.clients.values()]
        return round(median(sizes)) if sizes else None

    def examples(self, participant: str) -> list[Example]:
        """Returns the examples of a simulated client."""
        return [self._dealt.train[index] for index in self._dealt.clients[participant]]

    def _shard(self, participant: str) -> ClientData:
        """Returns the tokenised examples of a simulated client."""
        return shard_of(self.examples(participant), self._tokenizer, self._context, self._prompt.template)
