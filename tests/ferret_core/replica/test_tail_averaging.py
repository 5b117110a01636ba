"""The mean of the last rounds: what it is, that it moves nothing, and that the ledger alone gives it again."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ferret_core import catalog
from ferret_core.ledger.record import LedgerEntry
from ferret_core.models.parameters import trainable
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica, replay
from ferret_core.replica.tail_averaging import TailMean, begin
from ferret_core.rounds.early_stopping import better
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory

SPLIT = {"split": "validation", "validation_share": 0.4, "examples": 10, "generate_examples": 0}


def averaged(toy_spec: SpecFactory, *, rounds: int = 4, **server: Any) -> ExperimentSpec:
    asked = {"average": "tail", "development_examples": 4, **server}
    return catalog.resolve(toy_spec("fedavg", rounds=rounds, server=asked, evaluation=SPLIT)).spec


def weights(replica: Replica) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in trainable(replica.model).items()}


@pytest.mark.parametrize(("rounds", "first"), [(1, 1), (2, 2), (4, 3), (5, 3), (12, 7)])
def test_it_begins_after_the_first_half_of_the_rounds(toy_spec: SpecFactory, rounds: int, first: int) -> None:
    assert begin(toy_spec(rounds=rounds)) == first
    assert begin(toy_spec(rounds=rounds, server={"average": "tail", "average_from": 1})) == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.heavy
def test_it_is_the_mean_of_the_models_and_the_ledger_gives_it_again(toy_spec: SpecFactory, dtype: str) -> None:
    spec, entries = averaged(toy_spec, average_from=2), list[LedgerEntry]()
    spec = spec.model_copy(update={"model": spec.model.model_copy(update={"dtype": dtype})})
    result = simulate(spec, on_update=entries.append)
    replica, mean, seen = Replica.load(spec), TailMean(spec), list[dict[str, torch.Tensor]]()
    for record in replay(replica, entries):
        mean.update(replica)
        if record.round >= 2:
            seen.append(weights(replica))
    assert (mean.count, len(seen)) == (3, 3)
    again, other = Replica.load(spec), TailMean(spec)
    for _ in replay(again, entries):
        other.update(again)
    other.load_into(again)
    again.update_digest()
    with mean.swapped_in(replica):
        replica.update_digest()
        assert replica.digest == again.digest != result.digest
        for name, weight in weights(replica).items():
            expected = torch.stack([each[name].double() for each in seen]).mean(0)
            torch.testing.assert_close(weight.double(), expected, rtol=1e-2 if dtype == "bfloat16" else 1e-5, atol=1e-6)
    assert replica.digest == result.digest
    replica.update_digest()
    assert replica.digest == result.digest


@pytest.mark.heavy
def test_it_is_measured_beside_the_model_that_it_does_not_move(toy_spec: SpecFactory) -> None:
    rounds = simulate(averaged(toy_spec)).rounds
    assert ["average_eval_loss" in done.metrics for done in rounds] == [False, False, False, True, True]
    first, last = rounds[3].metrics, rounds[4].metrics
    assert first["average_eval_loss"] == first["eval_loss"]
    assert first["average_development_loss"] == first["development_loss"]
    assert last["average_eval_loss"] != last["eval_loss"]
    without = simulate(averaged(toy_spec, average="none", step_guard=True))
    assert [done.digest for done in without.rounds] == [done.digest for done in rounds]


def test_the_better_of_the_two_is_that_with_less_development_loss() -> None:
    assert [better(2.0, 1.9), better(1.9, 2.0), better(2.0, 2.0)] == ["average", "last", "last"]
    assert [better(2.0, None), better(None, None)] == [None, None]
