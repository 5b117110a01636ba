"""The table of optimizers says what torch itself says."""

from __future__ import annotations

import inspect
import itertools
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from ferret_core.training import optimizers
from ferret_core.training.config import LocalConfig
from ferret_core.training.optimizer_options import OPTIMIZERS, UNSUITED, decays

FIELDS = {"params", "lr", "weight_decay", "capturable", "differentiable"}
"""Arguments that are fields of their own, and those that change only how torch compiles and differentiates."""
TORCHS = {
    name.lower(): found
    for name, found in vars(torch.optim).items()
    if isinstance(found, type) and issubclass(found, torch.optim.Optimizer) and found is not torch.optim.Optimizer
}
NUMBERS = (-1.0, -0.5, 0.0, 0.25, 1.0, 1.5)


def test_every_optimizer_of_torch_can_be_named_or_is_known_to_be_unsuited() -> None:
    assert set(OPTIMIZERS) == set(TORCHS) - set(UNSUITED) | {"normalized"}


@pytest.mark.parametrize("name", sorted(OPTIMIZERS.keys() - {"normalized"}))
def test_options_and_defaults_are_torchs(name: str) -> None:
    own = FIELDS | {"momentum"} if name == "sgd" else FIELDS
    parameters = inspect.signature(TORCHS[name]).parameters
    assert dict(OPTIMIZERS[name]) == {key: found.default for key, found in parameters.items() if key not in own}
    assert decays(name) == ("weight_decay" in parameters)


def candidates(default: Any) -> list[Any]:
    match default:
        case bool() | None:
            return [True, False]
        case tuple():
            return list(itertools.product(NUMBERS, repeat=len(default)))
        case str():
            return ["tensor", "column", "row"]
        case _:
            return list(NUMBERS)


def accepted(**options: Any) -> LocalConfig | None:
    try:
        return LocalConfig.model_validate(options)
    except ValidationError:
        return None


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_torch_takes_every_value_that_the_table_takes(name: str) -> None:
    tried = 0
    for option, default in OPTIMIZERS[name].items():
        for value in candidates(default):
            config = accepted(optimizer=name, momentum=0.9 if name == "sgd" else 0.0, options={option: value})
            if config is not None:
                optimizers.build(config, [torch.nn.Parameter(torch.zeros(1))], 1.0)
                tried += 1
    assert tried >= len(OPTIMIZERS[name])
