"""What every federated algorithm must do; a new file in ``ferret_core/algorithms`` is tested here by being there."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ferret_core import catalog, discovery, federation
from ferret_core.algorithms._base import Client
from ferret_core.demo import model_path
from ferret_core.federated_data import FederatedData
from ferret_core.ledger import LedgerEntry, LedgerRecord, verify
from ferret_core.models.digest import model_digest
from ferret_core.participant import contribute
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.wire import Contribution
from ferret_core.replica import Replica
from ferret_core.simulate import simulate

SpecFactory = Callable[..., ExperimentSpec]

ZEROTH_ORDER = ("fedkseed", "fedkseed_pro", "fedmezo", "fedzo")
FORWARD_ONLY = {"learning_rate": 2e-3, "steps": 4, "batch_size": 4, "epsilon": 1e-3}
LEARNING = {"local": {**FORWARD_ONLY, "steps": 30}}
"""With fewer steps a zeroth-order method learns nothing in a few rounds; nothing else needs so many."""
ADAPTERS = {"fedit": 1e-2, "fedit_sgd": 0.3, "fedprompt": 0.1, "fedptuning": 3e-2}
"""Algorithms that freeze the model, with their rates: what they learn the toy task on must know something already."""
TOY: dict[str, dict[str, Any]] = {
    "fetchsgd": {"columns": 6_000, "k": 3_000},
    "topk": {"fraction": 0.2},
    **{name: {"local": FORWARD_ONLY} for name in ZEROTH_ORDER},
    **{name: {"local": {"learning_rate": rate, "batch_size": 4, "accumulation": 1}} for name, rate in ADAPTERS.items()},
}
"""Options with which an algorithm learns the toy task in a few rounds, where the common ones do not suit it."""

pytestmark = pytest.mark.parametrize("name", discovery.names("ferret_core.algorithms"))


def _tasks(replica: Replica) -> list[RoundTask]:
    names = federation.client_names(replica.spec.participants.simulated)
    return federation.round_tasks(replica.spec, "exp_test", replica.round + 1, names, replica.digest)


def _contributions(replica: Replica, data: FederatedData) -> list[Contribution]:
    return [contribute(replica, Client(task, data.shard(task.participant))).contribution for task in _tasks(replica)]


def _fold(replica: Replica, contributions: list[Contribution], previous: str) -> LedgerEntry:
    record, update = replica.fold("exp_test", [(digest_bytes(one.encode()), one) for one in contributions], previous)
    return LedgerEntry(record, record.hash, update)


@pytest.fixture
def replica(name: str, toy_spec: SpecFactory) -> Replica:
    return Replica.load(catalog.resolve(toy_spec(name, options=TOY.get(name))))


@pytest.fixture
def data(replica: Replica) -> FederatedData:
    return FederatedData(replica.spec, replica.tokenizer, replica.context)


def test_it_says_what_it_is_and_whose_it_is(name: str) -> None:
    module = importlib.import_module(f"ferret_core.algorithms.{name}")
    documentation = inspect.getdoc(module) or ""
    assert "for each round" in documentation, "the docstring reads like the paper's algorithm box"
    assert any(mark in documentation for mark in ("http", "ICML", "NeurIPS", "AISTATS")), "and cites the paper"


def test_its_config_survives_json_and_has_a_schema(name: str) -> None:
    module = discovery.load("ferret_core.algorithms", name, "algorithm")
    config = module.Config()
    assert module.Config.model_validate_json(config.model_dump_json()) == config
    assert set(catalog.entry("algorithms", name).options["properties"]) == set(module.Config.model_fields)
    with pytest.raises(ValueError, match="surprise"):
        module.Config(surprise=1)


def test_the_same_task_gives_the_same_bytes_and_leaves_the_model_alone(replica: Replica, data: FederatedData) -> None:
    first = [one.encode() for one in _contributions(replica, data)]
    torch.rand(3), np.random.rand(3)  # what others do with the global generators must not matter
    again = [one.encode() for one in _contributions(replica, data)]
    assert first == again
    assert model_digest(replica.model) == replica.digest


def test_it_can_be_stopped_at_every_local_step_and_leaves_the_model_alone(
    replica: Replica, data: FederatedData
) -> None:
    task, seen = _tasks(replica)[0], list[int]()
    contribute(replica, Client(task, data.shard(task.participant), on_step=seen.append))
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) > 1

    def stop(step: int) -> None:
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        contribute(replica, Client(task, data.shard(task.participant), on_step=stop))
    assert model_digest(replica.model) == replica.digest


def test_it_accepts_its_own_contributions_and_refuses_foreign_arrays(replica: Replica, data: FederatedData) -> None:
    contribution = Contribution.decode(_contributions(replica, data)[0].encode())
    task = _tasks(replica)[0]
    replica.algorithm.check(contribution, task, replica.shapes)
    name, array = next(iter(contribution.arrays.items()))
    foreign = [
        {**contribution.arrays, "extra": np.zeros(1, np.float32)},
        {key: value for key, value in contribution.arrays.items() if key != name},
        {**contribution.arrays, name: np.append(array, array[:1])},
        {**contribution.arrays, name: array.astype(np.int32)},
    ]
    for arrays in foreign:
        with pytest.raises(FerretError) as caught:
            replica.algorithm.check(Contribution(contribution.meta, arrays), task, replica.shapes)
        assert caught.value.code == "contribution.malformed"


def test_the_order_of_contributions_matters_no_more_than_rounding(name: str, toy_spec: SpecFactory) -> None:
    spec = catalog.resolve(toy_spec(name, options=TOY.get(name)))
    forward, backward = Replica.load(spec), Replica.load(spec)
    data = FederatedData(spec, forward.tokenizer, forward.context)
    contributions = _contributions(forward, data)
    _fold(forward, contributions, "")
    _fold(backward, contributions[::-1], "")
    for one, other in zip(forward.model.parameters(), backward.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_resumed_run_equals_an_uninterrupted_one(name: str, toy_spec: SpecFactory) -> None:
    spec = catalog.resolve(toy_spec(name, options=TOY.get(name)))
    replica = Replica.load(spec)
    data = FederatedData(spec, replica.tokenizer, replica.context)
    entries: list[LedgerEntry] = []
    for _ in range(4):
        entries.append(_fold(replica, _contributions(replica, data), entries[-1].hash if entries else ""))
    resumed = Replica.load(spec)
    assert len(list(verify(resumed, entries[:2]))) == 2
    for number in (2, 3):
        _fold(resumed, _contributions(resumed, data), entries[number - 1].hash)
    assert resumed.digest == replica.digest
    assert len({entry.record.digest for entry in entries}) == 4


def test_a_changed_ledger_does_not_verify(name: str, toy_spec: SpecFactory) -> None:
    spec = catalog.resolve(toy_spec(name, options=TOY.get(name)))
    replica = Replica.load(spec)
    data = FederatedData(spec, replica.tokenizer, replica.context)
    entry = _fold(replica, _contributions(replica, data), "")
    other = LedgerRecord.model_validate({**entry.record.model_dump(), "digest": "0" * 64})
    for broken, reason in [
        (LedgerEntry(other, entry.hash, entry.update), "recorded hash"),
        (LedgerEntry(other, other.hash, entry.update), "recorded is 000000000000"),
        (LedgerEntry(entry.record, entry.hash, entry.update + b"\0"), "bytes"),
    ]:
        with pytest.raises(FerretError, match=reason) as caught:
            list(verify(Replica.load(spec), [broken]))
        assert caught.value.code == "ledger.broken"


def test_it_learns_a_toy_task(name: str, toy_spec: SpecFactory) -> None:
    pretrained = {"model": {"source": str(model_path())}} if name in ADAPTERS else {}
    options = LEARNING if name in ZEROTH_ORDER else TOY.get(name)
    result = simulate(toy_spec(name, options=options, rounds=6, **pretrained))
    losses = [one.metrics["eval_loss"] for one in result.rounds]
    assert losses[-1] < losses[0] - 0.5
    assert all(one.bytes_up > 0 for one in result.rounds[1:])
