"""What a local update holds at least, and what is said where a GPU has less."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from ferret_core.protocol.errors import FerretError
from ferret_core.training.config import LocalConfig
from ferret_core.training.footprint import Counts, fit_room, local_bytes
from ferret_core.training.optimizer_options import OPTIMIZERS, WITH_MOMENTUM
from ferret_core.training.optimizers import build
from tests.refusals import refused

D, LARGEST = 7_000_000_000, 130_000_000
GB = 10**9
NEEDED = partial(local_bytes, counts=Counts(D, D, LARGEST))


def test_what_fits_is_let_through() -> None:
    fit_room(LocalConfig(), NEEDED, 112 * GB)
    fit_room(LocalConfig(optimizer="normalized"), NEEDED, 56 * GB)
    pure = LocalConfig(optimizer="normalized", accumulation=1, optimizer_in_backward=True, precision="pure_bfloat16")
    fit_room(pure, NEEDED, 17 * GB)


@pytest.mark.parametrize(
    ("room", "way"),
    [
        (80 * GB, r'optimizer = "normalized" needs 56\.0 GB'),
        (40 * GB, r'optimizer = "normalized" with optimizer_in_backward = true needs 28\.5 GB'),
        (20 * GB, r'.* optimizer_in_backward = true and precision = "pure_bfloat16" .* needs 16\.3 GB'),
        (16 * GB, "use a smaller model, an algorithm that trains adapters, or a larger device"),
    ],
)
def test_too_little_memory_is_named_with_the_options_that_would_fit(room: int, way: str) -> None:
    with pytest.raises(
        FerretError, match=rf"at least 112\.0 GB on a device that has {room // GB}\.0 GB: {way}"
    ) as caught:
        fit_room(LocalConfig(), NEEDED, room)
    assert caught.value.code == "memory.exhausted"
    assert caught.value.errors[0].field == "algorithm.local.optimizer"


def test_steps_are_taken_in_the_backward_pass_where_only_that_fits() -> None:
    local = LocalConfig(optimizer="normalized", batch_size=2, accumulation=4)
    assert fit_room(local, NEEDED, 56 * GB) is local
    chosen = fit_room(local, NEEDED, 40 * GB)
    assert (chosen.optimizer_in_backward, chosen.batch_size, chosen.accumulation) == (True, 8, 1)
    assert chosen.steps_for(None) == local.steps_for(None)


@pytest.mark.parametrize(
    ("options", "elsewhere", "way"),
    [
        ({"optimizer": "normalized", "momentum": 0.9}, (), "momentum = 0"),
        ({"optimizer": "sgd", "clip_norm": 1.0}, (), "no clip_norm"),
        ({"optimizer": "sgd"}, ("another algorithm.allocation",), "another algorithm.allocation"),
    ],
)
def test_what_needs_whole_gradients_is_refused_by_name(
    options: dict[str, Any], elsewhere: tuple[str, ...], way: str
) -> None:
    with refused("memory.exhausted", f"steps in the backward pass need 28.5 GB, and {way}"):
        fit_room(LocalConfig.model_validate(options), NEEDED, 40 * GB, elsewhere)


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "adafactor"])
@pytest.mark.parametrize("more", [{}, {"amsgrad": True}, {"centered": True}, {"momentum": 0.5}])
def test_the_state_of_an_optimizer_is_counted(name: str, more: dict[str, Any]) -> None:
    options = {option: value for option, value in more.items() if option in OPTIMIZERS[name]}
    momentum = {"momentum": 0.5} if name in WITH_MOMENTUM and "momentum" in more else {}
    local = LocalConfig(optimizer=name, options=options, **momentum)
    weights = nn.Parameter(torch.ones(16, 16))
    optimizer = build(local, [weights], 0.1)
    weights.grad = torch.ones_like(weights)
    optimizer.step()
    kept = sum(state.numel() for state in optimizer.state[weights].values() if isinstance(state, torch.Tensor))
    assert local_bytes(local, Counts(256, 256, 256)) // 4 - 2 * 256 == kept // 256 * 256


def test_adapters_need_little_beside_the_weights() -> None:
    fit_room(LocalConfig(), partial(local_bytes, counts=Counts(D, 4_000_000, 100_000)), 29 * GB)
