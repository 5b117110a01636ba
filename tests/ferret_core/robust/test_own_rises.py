"""What a participant measures of the round before, and that its model is as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from ferret_core import catalog, federation
from ferret_core.algorithms._base import Client
from ferret_core.discretion import Discretion
from ferret_core.federated_data import FederatedData
from ferret_core.fold import fold
from ferret_core.models.digest import model_digest
from ferret_core.models.parameters import trainable
from ferret_core.participant import contribute
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.rises import GREATEST, packed, rise, unpacked
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.wire import encode
from ferret_core.replica import Replica
from ferret_core.robust.guard import SEQUENCES, Guard
from ferret_core.robust.own_rises import own_rises
from ferret_core.sealed import Sealed, unseal
from tests.refusals import refused

Spec = Callable[..., ExperimentSpec]
MEASURED = {"step": "guard", "development_by": "participants", "learning_rate": 8.0}


def tasks(replica: Replica) -> list[RoundTask]:
    names = federation.client_names(replica.spec.participants.simulated)
    return federation.round_tasks(replica.spec, SIMULATION, replica.round + 1, names, replica.digest)


def contributions(replica: Replica, data: FederatedData) -> list[Sealed]:
    return [contribute(replica, Client(task, data.shard(task.participant))).sealed for task in tasks(replica)]


@pytest.fixture(params=["float32", "bfloat16"])
def spec(request: pytest.FixtureRequest, toy_spec: Spec) -> ExperimentSpec:
    model = toy_spec().model.model_dump() | {"dtype": request.param}
    return catalog.resolve(toy_spec(model=model, server=MEASURED))


@pytest.fixture
def data(spec: ExperimentSpec) -> FederatedData:
    replica = Replica.load(spec)
    return FederatedData(spec, replica.tokenizer, replica.context)


@pytest.fixture
def replica(spec: ExperimentSpec, data: FederatedData) -> Replica:
    """After round 1."""
    replica = Replica.load(spec)
    sent = contributions(replica, data)
    assert [sealed.meta.rises for sealed in sent] == [None] * 3, "there is no step before"
    fold(replica, SIMULATION, sent)
    return replica


def test_they_are_those_of_the_models_that_taking_back_gives(replica: Replica, data: FederatedData) -> None:
    shard = data.shard("client-001")
    guard, standing, losses = Guard.own(shard), replica.standing(), list[float]()
    for part in (None, 0.5, 0.75, 0.875, 1.0):
        if part is not None:
            replica.take_back(part)
        losses.append(guard.loss(replica.model))
        replica.restore(standing)
    *after, before = losses
    assert own_rises(replica, shard) == packed([rise(before, loss) for loss in after])
    assert any(unpacked(own_rises(replica, shard)))


def test_the_loss_before_the_step_is_that_of_the_model_before_it(replica: Replica, spec: ExperimentSpec) -> None:
    replica.take_back(1.0)
    half = spec.model.dtype != "float32"
    pairs = zip(trainable(replica.model).values(), trainable(Replica.load(spec).model).values(), strict=True)
    for back, base in pairs:
        torch.testing.assert_close(back, base, rtol=2e-2 if half else 1e-5, atol=2e-2 if half else 1e-5)


def test_the_model_is_left_bit_for_bit(replica: Replica, data: FederatedData) -> None:
    before = replica.digest
    own_rises(replica, data.shard("client-001"))
    assert (replica.digest, model_digest(replica.model, files=replica.files)) == (before, before)
    assert all(sealed.meta.rises is not None for sealed in contributions(replica, data))
    assert model_digest(replica.model, files=replica.files) == before


def test_it_is_so_where_measuring_fails(replica: Replica, data: FederatedData, monkeypatch: pytest.MonkeyPatch) -> None:
    before, asked = replica.digest, list[nn.Module]()

    def fails(self: Guard, model: nn.Module) -> float:
        asked.append(model)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return 1.0

    monkeypatch.setattr(Guard, "loss", fails)
    with pytest.raises(KeyboardInterrupt):
        own_rises(replica, data.shard("client-001"))
    assert model_digest(replica.model, files=replica.files) == before


def test_few_sequences_are_enough(data: FederatedData, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = data.shard("client-001")
    assert len(shard) > SEQUENCES
    few = Guard.own(shard)._shard
    places = [index * len(shard) // SEQUENCES for index in range(SEQUENCES)]
    assert few.examples == [shard.examples[place] for place in places]
    assert len(Guard.own(few)._shard) == SEQUENCES


@pytest.mark.parametrize(
    ("losses", "rises"),
    [
        ([float("inf"), 8.0, 4.0, 2.0, 1.0], [GREATEST - 1, 7.0, 3.0, 1.0]),
        ([float("inf")] * 4 + [0.0], [GREATEST] * 4),
        ([4.0, 4.0, 4.0, 4.0, float("inf")], [4.0 / GREATEST - 1] * 4),
        ([float("inf")] * 5, [0.0] * 4),
        ([1e300, 1.0, 1.0, 1.0, 1.0], [GREATEST - 1, 0.0, 0.0, 0.0]),
    ],
)
@pytest.mark.heavy
def test_a_loss_that_is_no_number_is_the_greatest(
    losses: list[float], rises: list[float], replica: Replica, data: FederatedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(losses)
    monkeypatch.setattr(Guard, "loss", lambda self, model: next(left))
    assert own_rises(replica, data.shard("client-001")) == packed(rises)


def test_who_is_discreet_about_metrics_measures_nothing(
    replica: Replica, data: FederatedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferret_core.participant.own_rises", lambda replica, shard: pytest.fail("it measured"))
    task = tasks(replica)[0]
    for metrics in (frozenset[str](), frozenset({"train_loss"})):
        client = Client(task, data.shard(task.participant), discretion=Discretion(metrics=metrics))
        assert contribute(replica, client).sealed.meta.rises is None


def test_rises_where_nobody_asked_for_them_are_malformed(replica: Replica, data: FederatedData, toy_spec: Spec) -> None:
    task = tasks(replica)[0]
    sealed = contribute(replica, Client(task, data.shard(task.participant))).sealed
    assert unseal(sealed.blob, replica.spec, task, replica.shapes).meta.rises == sealed.meta.rises
    model = replica.spec.model.model_dump()
    for server in ({}, {"step": "guard"}):
        with refused("contribution.malformed", "server.development_by") as caught:
            unseal(sealed.blob, catalog.resolve(toy_spec(model=model, server=server)), task, replica.shapes)
        assert [error.field for error in caught.value.errors] == ["metadata.rises"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"round": 1}, "belongs to no step"),
        ({"rises": "007c000000000000"}, "four finite numbers"),
        ({"rises": "003c"}, "16 hexadecimal digits"),
        ({"rises": [1.0, 0.5, 0.25, 0.125]}, "string"),
    ],
)
@pytest.mark.heavy
def test_malformed_rises_are_refused_by_name(
    changes: dict[str, Any], message: str, replica: Replica, data: FederatedData
) -> None:
    task = tasks(replica)[0].model_copy(update={"round": changes.get("round", 2)})
    sealed = contribute(replica, Client(tasks(replica)[0], data.shard(task.participant))).sealed
    forged = encode(sealed.contribution.arrays, {**sealed.meta.model_dump(mode="json"), **changes})
    with pytest.raises(FerretError, match=message) as caught:
        unseal(forged, replica.spec, task, replica.shapes)
    assert caught.value.code == "contribution.malformed"
    assert [error.field for error in caught.value.errors] == ["metadata.rises"]
