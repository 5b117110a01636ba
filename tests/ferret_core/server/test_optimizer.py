"""The server's optimizers against their formulas, on a model of two weights; and replayed from the ledger."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ferret_core import catalog
from ferret_core.ledger.record import LedgerEntry
from ferret_core.models.parameters import trainable
from ferret_core.protocol.spec import ServerSpec
from ferret_core.replica.replica import Replica, replay
from ferret_core.server.optimizer import ServerOptimizer
from ferret_core.simulate import simulate
from tests.ferret_core.replicas import SpecFactory

pytestmark = pytest.mark.heavy


UPDATES = [[0.5, -0.25], [0.1, 0.2], [-0.3, 0.0]]


class Mover:
    """An algorithm whose round is a given update."""

    def apply_update(self, model: nn.Module, state: Any, result: Any, rate: float) -> Any:
        with torch.no_grad():
            for parameter in trainable(model).values():
                parameter -= rate * torch.from_numpy(result["update"]).to(parameter.dtype)
        return state


def run(spec: ServerSpec, dtype: torch.dtype = torch.float32) -> list[float]:
    """The weights, 1 and 1 at first, after a round of each of ``UPDATES``."""
    model = nn.Linear(2, 1, bias=False, dtype=dtype)
    nn.init.ones_(model.weight)
    optimizer = ServerOptimizer(spec, len(UPDATES))
    for number, update in enumerate(UPDATES, start=1):
        optimizer.step(Mover(), model, {}, {"update": np.array([update], np.float32)}, number)
    return model.weight.detach().float().reshape(-1).tolist()


def by_hand(step: Callable[[int, float], float]) -> list[float]:
    """``step(t, Δ)`` is called for the rounds of one weight, then for those of the other."""
    return [1 - sum(step(t, update[weight]) for t, update in enumerate(UPDATES)) for weight in (0, 1)]


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": 0.5},
        {"learning_rate": 2, "momentum": 0.9},
    ],
    ids=str,
)
def test_updates_are_followed_as_torchs_sgd_follows_gradients(options: dict[str, Any]) -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    rate = options["learning_rate"]
    outer = torch.optim.SGD(
        [parameter], lr=rate, **{name: options[name] for name in options if name != "learning_rate"}
    )
    for update in UPDATES:
        parameter.grad = torch.tensor(update)
        outer.step()
    assert run(ServerSpec.model_validate(options)) == pytest.approx(parameter.tolist(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("optimizer", ["adam", "yogi"])
def test_adaptive_steps_are_scaled_by_the_second_moment(optimizer: str) -> None:
    mean = square = 0.0

    def step(t: int, delta: float) -> float:
        nonlocal mean, square
        mean, square = (mean, square) if t else (0.0, 0.0)
        mean = 0.8 * mean + 0.2 * delta
        if optimizer == "adam":
            square = 0.95 * square + 0.05 * delta**2
        else:
            square -= 0.05 * delta**2 * math.copysign(float(square != delta**2), square - delta**2)
        return 0.1 * mean / (math.sqrt(square) + 0.01)

    spec = ServerSpec.model_validate(
        {"optimizer": optimizer, "learning_rate": 0.1, "beta1": 0.8, "beta2": 0.95, "tau": 0.01}
    )
    assert run(spec) == pytest.approx(by_hand(step), rel=1e-5)


def test_half_precision_is_moved_by_rounding_and_keeps_its_type() -> None:
    moved = run(ServerSpec(momentum=0.5), torch.bfloat16)
    assert moved == pytest.approx(run(ServerSpec(momentum=0.5)), abs=2**-6)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [2, 2, 2, 2]),
        ({"schedule": "linear"}, [2, 1.5, 1, 0.5]),
        ({"schedule": "cosine"}, [2, 1 + math.cos(math.pi / 4), 1, 1 - math.cos(math.pi / 4)]),
        ({"warmup_rounds": 1}, [1, 2, 2, 2]),
        ({"warmup_rounds": 2, "schedule": "linear"}, [2 / 3, 4 / 3, 2, 1]),
        ({"warmup_rounds": 9}, [0.2, 0.4, 0.6, 0.8]),
    ],
)
def test_schedules(options: dict[str, Any], expected: list[float]) -> None:
    optimizer = ServerOptimizer(ServerSpec.model_validate({"learning_rate": 2, **options}), rounds=4)
    assert [optimizer.rate(number) for number in (1, 2, 3, 4)] == pytest.approx(expected)


@pytest.mark.parametrize(("weights", "expected"), [("equal", [1, 1, 1, 1]), ("examples", [7, 5, 6, 15])])
def test_a_participant_weighs_the_same_or_by_its_examples_up_to_thrice_their_median(
    weights: str, expected: list[float]
) -> None:
    optimizer = ServerOptimizer(ServerSpec.model_validate({"weights": weights}), 1)
    assert optimizer.weights([7, 5, 6, 2**31 - 1], cap=2.5) == expected


def test_a_momentum_is_refused_where_it_has_no_effect() -> None:
    with pytest.raises(ValueError, match="needs optimizer = 'sgd'"):
        ServerSpec(optimizer="adam", momentum=0.9)


@pytest.mark.parametrize(
    "server",
    [
        {"optimizer": "adam", "learning_rate": 0.01},
        {"optimizer": "yogi", "learning_rate": 0.01, "schedule": "cosine"},
        {"momentum": 0.5, "warmup_rounds": 1, "weights": "examples"},
    ],
    ids=str,
)
@pytest.mark.parametrize("algorithm", ["ferret", "fedavg"])
def test_every_optimizer_learns_and_is_replayed_from_the_ledger(
    toy_spec: SpecFactory, algorithm: str, server: dict[str, Any]
) -> None:
    spec = catalog.resolve(toy_spec(algorithm, server=server, rounds=4)).spec
    ledger: list[LedgerEntry] = []
    result = simulate(spec, on_update=ledger.append)
    assert result.rounds[-1].metrics["eval_loss"] < result.rounds[0].metrics["eval_loss"] - 0.1
    replica = Replica.load(spec)
    assert len(list(replay(replica, ledger))) == 4
    assert replica.digest == result.digest
