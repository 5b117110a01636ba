"""The guard measures each round's model once: it ends one round and begins the next."""

from __future__ import annotations

import pytest
from torch import nn

from ferret_core.aggregation.loss_guard import LossGuard, divergence_limit
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The losses that guards have measured."""
    losses: list[float] = []
    loss = LossGuard.loss

    def counted(self: LossGuard, model: nn.Module) -> float:
        losses.append(loss(self, model))
        return losses[-1]

    monkeypatch.setattr(LossGuard, "loss", counted)
    return losses


def test_a_run_of_three_rounds_measures_four_models(toy_spec: SpecFactory, measured: list[float]) -> None:
    simulate(toy_spec(rounds=3))
    assert len(measured) == len(set(measured)) == 4


def test_only_the_remembered_model_is_not_measured(tiny_model: nn.Module, measured: list[float]) -> None:
    guard = LossGuard(ClientData([Encoded([0, 3], [20, 1])], pad_id=2))
    before = guard.loss_of("before", tiny_model)
    assert [guard.loss_of("before", tiny_model), len(measured)] == [before, 1]
    guard.remember("after", 2.5)
    assert [guard.loss_of("after", tiny_model), len(measured)] == [2.5, 1]
    assert [guard.loss_of("before", tiny_model), len(measured)] == [before, 2]


@pytest.mark.parametrize(("before", "bound"), [(2.0, 6.0), (0.1, 3.0), (0.0, 3.0)])
def test_a_round_may_multiply_the_loss_but_for_a_loss_below_one_nat(before: float, bound: float) -> None:
    assert divergence_limit(before, 3.0) == bound
