from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferret_core.algorithms import fedit_sgd
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import simulate

SpecFactory = Callable[..., ExperimentSpec]
LOCAL: dict[str, Any] = {"learning_rate": 0.5, "steps": 2, "batch_size": 4, "accumulation": 1}


def test_it_descends_by_sgd_unless_told_otherwise() -> None:
    assert fedit_sgd.Config().local.optimizer == "sgd"
    assert fedit_sgd.Config.model_validate({"local": {"steps": 3}}).local.optimizer == "sgd"


def test_it_is_fedit_with_sgd(toy_spec: SpecFactory) -> None:
    once = {"rounds": 1, "evaluation": {"examples": 1, "generate": 0}}
    preset = simulate(toy_spec("fedit_sgd", options={"local": LOCAL}, **once))
    by_hand = simulate(toy_spec("fedit", options={"local": {**LOCAL, "optimizer": "sgd"}}, **once))
    other = simulate(toy_spec("fedit", options={"local": LOCAL}, **once))
    assert preset.digest == by_hand.digest != other.digest
