from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.protocol.errors import FerretError
from ferret_core.training.activation_checkpointing import checkpointing
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train
from tests.ferret_core.training.conftest import with_dropout

Trained = Callable[..., torch.Tensor]


def switches(model: nn.Module) -> list[object]:
    return [(vars(layer).get("gradient_checkpointing"), len(layer._forward_hooks)) for layer in model.modules()]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_gradients_are_the_same_dropout_included(tiny_model: Any, trained: Trained, precision: str) -> None:
    with_dropout(tiny_model)
    plain = trained(tiny_model, precision=precision)
    assert torch.equal(trained(tiny_model, precision=precision, activation_checkpointing=True), plain)


@pytest.mark.parametrize(("checkpointed", "passes"), [(False, 1), (True, 2)])
def test_layers_are_computed_once_more(tiny_model: Any, shard: ClientData, checkpointed: bool, passes: int) -> None:
    seen: list[nn.Module] = []
    tiny_model.model.layers[0].mlp.register_forward_pre_hook(lambda module, _: seen.append(module))
    config = LocalConfig(steps=1, batch_size=2, accumulation=1, activation_checkpointing=checkpointed)
    train(tiny_model, shard.batches(2, 5), config)
    assert len(seen) == passes


@pytest.mark.parametrize("on", [False, True])
def test_the_model_is_switched_back(tiny_model: Any, shard: ClientData, on: bool) -> None:
    if on:
        tiny_model.model.layers[1].gradient_checkpointing = True
        tiny_model.model.layers[1]._gradient_checkpointing_func = lambda function, *rest: function(*rest)
    before = switches(tiny_model)

    def interrupt(step: int) -> None:
        assert all(layer.gradient_checkpointing for layer in tiny_model.model.layers)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tiny_model, shard.batches(1, 5), LocalConfig(activation_checkpointing=True), interrupt)
    assert switches(tiny_model) == before


def test_a_model_that_cannot_says_so() -> None:
    message = r"activation_checkpointing = True: Linear has no layers .* set it to false"
    with pytest.raises(FerretError, match=message) as caught, checkpointing(nn.Linear(2, 2)):
        pass
    assert caught.value.code == "model.invalid"
