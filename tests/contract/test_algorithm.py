"""What every federated algorithm must do; a new file in ``ferret_core/algorithms`` is tested here by being there."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
import torch

from ferret_core import catalog, discovery
from ferret_core.aggregation.aggregate import aggregate_round
from ferret_core.aggregation.dense_sums import DenseSums
from ferret_core.algorithms.base import Client, DecodableUpdate
from ferret_core.client.local_round import contribute
from ferret_core.contribution import SealedContribution, open_contribution
from ferret_core.ledger.record import LedgerEntry, LedgerRecord
from ferret_core.models.digest import model_digest
from ferret_core.models.parameters import trainable
from ferret_core.models.shapes import count
from ferret_core.protocol.spec import ExperimentSpec, RobustSpec
from ferret_core.protocol.wire import Contribution
from ferret_core.replica.replica import Replica, replay
from ferret_core.sample import model_path
from ferret_core.secure.packing import Layout
from ferret_core.simulate import simulate
from ferret_core.training.privacy import ReleasePolicy
from tests.algorithms import NAMES
from tests.ferret_core.replicas import SpecFactory, clients_of, replica_of, sent_by
from tests.refusals import refused

ZEROTH_ORDER = ("fedkseed", "fedzo")
FORWARD_ONLY = {"learning_rate": 2e-3, "steps": 4, "batch_size": 4, "epsilon": 1e-3}
LEARNING = {"local": {**FORWARD_ONLY, "steps": 30}}
"""With fewer steps a zeroth-order method learns nothing in a few rounds; nothing else needs so many."""
ADAPTERS = {"fed_sb": 1e-2, "fedit": 1e-2, "fedprompt": 0.1, "fedptuning": 3e-2}
"""Algorithms that freeze the model, with their rates: what they learn the toy task on must know something already."""
TOY: dict[str, dict[str, Any]] = {
    "fetchsgd": {"columns": 6_000, "k": 3_000},
    "topk": {"fraction": 0.2},
    **{name: {"local": FORWARD_ONLY} for name in ZEROTH_ORDER},
    **{name: {"local": {"learning_rate": rate, "batch_size": 4, "accumulation": 1}} for name, rate in ADAPTERS.items()},
}
"""Options with which an algorithm learns the toy task in a few rounds, where the common ones do not suit it."""


FAMILIES = {
    "dense": "fedavg",
    "adapter": "fedit",
    "seed pool": "fedkseed",
    "sparse": "topk",
    "sketch": "fetchsgd",
    "projected": "ferret",
}
"""An algorithm of each family: the others meet the contract in ``make test-all``."""


def of_every_algorithm(*, slow: Iterable[str] = ()) -> pytest.MarkDecorator:
    """The tests of an algorithm share one run, so one process has them all. Those of ``slow`` are left to
    ``make test-all``."""
    usual = set(FAMILIES.values()) - set(slow)
    marks = {name: [pytest.mark.xdist_group(name), *([] if name in usual else [pytest.mark.slow])] for name in NAMES}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks[name]) for name in NAMES])


class Run(NamedTuple):
    """Four rounds of the toy task: what each got from its participants, the ledger, and the model's last digest."""

    spec: ExperimentSpec
    contributions: list[list[SealedContribution]]
    entries: list[LedgerEntry]
    digest: str


def _named(sealed: SealedContribution, participant: str) -> SealedContribution:
    """The same contribution of another participant: a round's are aggregated in the order of their names."""
    meta = sealed.meta.model_copy(update={"participant": participant})
    return sealed._replace(contribution=replace(sealed.contribution, meta=meta))


@pytest.fixture(scope="session")
def run_of(toy_spec: SpecFactory) -> Callable[[str], Run]:
    @cache
    def run(name: str) -> Run:
        replica = replica_of(toy_spec(name, options=TOY.get(name)))
        contributions: list[list[SealedContribution]] = []
        entries: list[LedgerEntry] = []
        for _ in range(4):
            contributions.append(sent_by(replica))
            entries.append(aggregate_round(replica, "simulation", contributions[-1]).entry)
        return Run(replica.spec, contributions, entries, replica.digest)

    return run


@pytest.fixture
def run(name: str, run_of: Callable[[str], Run]) -> Run:
    return run_of(name)


@pytest.fixture
def replica(run: Run) -> Replica:
    """The base model."""
    return Replica.load(run.spec)


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is_and_whose_it_is(name: str) -> None:
    module = importlib.import_module(f"ferret_core.algorithms.{name}")
    documentation = inspect.getdoc(module) or ""
    assert "for each round" in documentation, "the docstring reads like the paper's algorithm box"
    assert any(mark in documentation for mark in ("http", "ICML", "NeurIPS", "AISTATS")), "and cites the paper"


@pytest.mark.parametrize("name", NAMES)
def test_its_config_survives_json_and_has_a_schema(name: str) -> None:
    module = discovery.load(catalog.CONFIGS["algorithms"], name, "algorithm")
    config = module.Config()
    assert module.Config.model_validate_json(config.model_dump_json()) == config
    assert set(catalog.entry("algorithms", name).options["properties"]) == set(module.Config.model_fields)
    with pytest.raises(ValueError, match="surprise"):
        module.Config(surprise=1)


@of_every_algorithm()
def test_the_same_task_gives_the_same_bytes_and_leaves_the_model_alone(run: Run, replica: Replica) -> None:
    _ = torch.rand(3), np.random.rand(3)  # what others do with the global generators must not matter
    assert [sealed.blob for sealed in sent_by(replica)] == [sealed.blob for sealed in run.contributions[0]]
    assert model_digest(replica.model, files=replica.files) == replica.digest


DATA_BLIND: dict[str, dict[str, Any]] = {"ferret": {"allocation": "fixed"}}
"""Options without which an algorithm looks at the update in more than one place."""


@of_every_algorithm()
def test_all_that_it_sends_follows_from_the_one_vector_that_is_protected(name: str, toy_spec: SpecFactory) -> None:
    """With that vector replaced by one that knows no data, two participants' data give the same bytes."""
    replica = replica_of(toy_spec(name, options=TOY.get(name, {}) | DATA_BLIND.get(name, {})))
    first, other, _ = clients_of(replica)
    vectors: list[np.ndarray] = []

    def blind(vector: np.ndarray) -> np.ndarray:
        vectors.append(vector)
        return np.linspace(-1, 1, len(vector), dtype=np.float32)

    discretion = ReleasePolicy(frozenset(), examples=False, protect=blind)
    shards = (first.shard, other.shard)
    sent = [contribute(replica, Client(first.task, shard, discretion=discretion)) for shard in shards]
    assert len(vectors) == 2, "once for each contribution"
    assert not np.array_equal(vectors[0], vectors[1]), "the data differ"
    assert sent[0].sealed.blob == sent[1].sealed.blob
    assert sent[0].sealed.meta.metrics == {}
    assert sent[0].sealed.meta.examples == 1


@of_every_algorithm()
def test_it_can_be_stopped_at_every_local_step_and_leaves_the_model_alone(replica: Replica) -> None:
    seen = list[int]()
    contribute(replica, clients_of(replica, seen.append)[0])
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) > 1

    def stop(step: int) -> None:
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        contribute(replica, clients_of(replica, stop)[0])
    assert model_digest(replica.model, files=replica.files) == replica.digest


@of_every_algorithm()
def test_it_accepts_its_own_contributions_and_refuses_foreign_arrays(run: Run, replica: Replica) -> None:
    sealed, task = run.contributions[0][0], clients_of(replica)[0].task
    contribution, config = sealed.contribution, replica.experiment.config
    assert open_contribution(sealed.blob, replica.experiment, task, replica.shapes).digest == sealed.digest
    size, sent = config.size(replica.shapes), sum(array.nbytes for array in contribution.arrays.values())
    assert len(sealed.blob) <= size.total
    assert sent == size.arrays, "an upload of another size is not even read"
    name, array = next(iter(contribution.arrays.items()))
    foreign = [
        {**contribution.arrays, "extra": np.zeros(1, np.float32)},
        {key: value for key, value in contribution.arrays.items() if key != name},
        {**contribution.arrays, name: np.append(array, array[:1])},
        {**contribution.arrays, name: array.astype(np.int32)},
    ]
    for arrays in foreign:
        with refused("contribution.malformed"):
            config.check(Contribution(contribution.meta, arrays), task, replica.shapes)


@of_every_algorithm()
def test_its_norms_are_finite_and_grow_with_what_is_sent(run: Run, replica: Replica) -> None:
    config = replica.experiment.config
    contribution = run.contributions[0][0].contribution
    norms = config.norms(contribution, replica.shapes)
    assert norms.values.shape == norms.sizes.shape
    assert 0 < norms.total < 1e3
    halved = {
        name: array / array.dtype.type(2) for name, array in contribution.arrays.items() if array.dtype.kind == "f"
    }
    assert halved
    less = config.norms(Contribution(contribution.meta, {**contribution.arrays, **halved}), replica.shapes)
    assert 0 < less.total < 0.6 * norms.total


@of_every_algorithm()
def test_a_clipped_contribution_counts_by_its_factor(run: Run, replica: Replica) -> None:
    """Halved, all three move the model half as far, whatever they travel as."""
    halves = {sealed.meta.participant: 0.5 for sealed in run.contributions[0]}
    before = [weight.detach().clone() for weight in trainable(replica.model).values()]
    halved = Replica.load(run.spec)
    replica.apply(replica.aggregate(run.contributions[0]))
    halved.apply(halved.aggregate(run.contributions[0], halves))
    pairs = zip(before, trainable(replica.model).values(), trainable(halved.model).values(), strict=True)
    for start, whole, half in pairs:
        torch.testing.assert_close(half - start, (whole - start) / 2, rtol=1e-2, atol=1e-6)


@of_every_algorithm()
def test_it_says_whether_its_numbers_are_comparable_and_then_has_their_median(run: Run, replica: Replica) -> None:
    comparable = replica.experiment.traits.comparable
    assert not comparable or {"coordinates", "centred"} <= set(dir(replica.algorithm))
    ranked = run.spec.model_copy(update={"robust": RobustSpec(rule="median")})
    if not comparable:
        with refused("spec.invalid", "robust.rule"):
            catalog.resolve(ranked)
        return
    aggregate_round(median := replica_of(ranked), "simulation", run.contributions[0])
    assert median.digest != replica.digest


@of_every_algorithm()
def test_it_says_whether_an_update_can_be_told_from_what_is_sent(run: Run, replica: Replica) -> None:
    traits = replica.experiment.traits
    assert traits.decodable is hasattr(replica.algorithm, "decoded")
    if traits.decodable:
        decoded = cast(DecodableUpdate, replica.algorithm).decoded
        update = decoded(replica.state, run.contributions[0][0].contribution, replica.shapes)
        assert update.shape == (count(replica.shapes),)


@of_every_algorithm()
def test_it_says_whether_it_sends_whole_updates_and_then_they_sum_in_fixed_point(run: Run, replica: Replica) -> None:
    sent = [sealed.contribution for sealed in run.contributions[0]]
    whole = [dict(each.arrays).keys() == {"update"} for each in sent]
    assert whole == [replica.experiment.traits.dense] * 3
    if replica.experiment.traits.dense:
        sums = DenseSums(1.0, 3)
        layout = Layout(sums.segments(replica.shapes), 3)
        packed = [b"".join(layout.pack(sums.integers(replica.state, each, replica.shapes))) for each in sent]
        found = sums.mean(replica.state, layout.sum(packed), 3, replica.shapes)
        exact = np.mean([each.arrays["update"].astype(np.float64) for each in sent], axis=0)
        np.testing.assert_allclose(found.arrays["update"], exact, rtol=2.0**-24, atol=3 / 2**31)
        assert found.metrics["clipped_weights"] == 0


@of_every_algorithm()
def test_the_order_of_contributions_matters_no_more_than_rounding(run: Run, replica: Replica) -> None:
    backward, contributions = Replica.load(run.spec), run.contributions[0]
    aggregate_round(replica, "simulation", contributions)
    renamed = zip(contributions[::-1], contributions, strict=True)
    aggregate_round(backward, "simulation", [_named(sealed, other.meta.participant) for sealed, other in renamed])
    for weight, other in zip(replica.model.parameters(), backward.model.parameters(), strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-5, atol=1e-6)


@of_every_algorithm()
def test_a_resumed_run_equals_an_uninterrupted_one(run: Run, replica: Replica) -> None:
    assert len(list(replay(replica, run.entries[:2]))) == 2
    for _ in range(2):
        aggregate_round(replica, "simulation", sent_by(replica))
    assert (replica.digest, replica.head) == (run.digest, run.entries[-1].hash)
    assert len({entry.record.digest for entry in run.entries}) == 4


@of_every_algorithm()
def test_a_changed_ledger_does_not_verify(run: Run) -> None:
    entry = run.entries[0]
    other = LedgerRecord.model_validate({**entry.record.model_dump(), "digest": "0" * 64})
    for broken, reason in [
        (LedgerEntry(other, entry.hash, entry.update), "recorded hash"),
        (LedgerEntry(other, other.hash, entry.update), "recorded is 000000000000"),
        (LedgerEntry(entry.record, entry.hash, entry.update + b"\0"), "bytes"),
    ]:
        with refused("ledger.broken", reason):
            list(replay(Replica.load(run.spec), [broken]))


@of_every_algorithm(slow=[*ADAPTERS, *ZEROTH_ORDER])
def test_it_learns_a_toy_task(name: str, toy_spec: SpecFactory) -> None:
    pretrained = {"model": {"source": str(model_path())}} if name in ADAPTERS else {}
    options = LEARNING if name in ZEROTH_ORDER else TOY.get(name)
    evaluation = {"every": 6, "examples": 10, "generate_examples": 0}
    base, *between, last = simulate(
        toy_spec(name, options=options, rounds=6, evaluation=evaluation, **pretrained)
    ).rounds
    assert last.metrics["eval_loss"] < base.metrics["eval_loss"] - 0.5
    assert all(done.bytes_up > 0 for done in (*between, last))
