from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import islice

import pytest
import torch
from pydantic import ValidationError
from transformers import LlamaForCausalLM

from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.training.config import LocalConfig
from ferret_core.training.loss import response_loss

Trained = Callable[..., torch.Tensor]
CLASSES = ["ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "SGD"]


def by_hand(model: LlamaForCausalLM, shard: ClientData, build: Callable[..., torch.optim.Optimizer]) -> torch.Tensor:
    """Two steps of an optimizer that is used as torch documents it."""
    moved = copy.deepcopy(model).train()
    optimizer = build(moved.parameters())
    for batch in islice(shard.batches(4, 5), 2):
        optimizer.zero_grad()
        loss = response_loss(moved, batch)
        (loss.nll / loss.tokens).backward()
        optimizer.step()
    return torch.cat([parameter.detach().reshape(-1) for parameter in moved.parameters()])


@pytest.mark.parametrize("name", CLASSES)
def test_each_steps_as_torchs_own(tiny_model: LlamaForCausalLM, shard: ClientData, trained: Trained, name: str) -> None:
    expected = by_hand(tiny_model, shard, lambda p: getattr(torch.optim, name)(p, lr=0.01, weight_decay=0.1))
    options = {"optimizer": name.lower(), "learning_rate": 0.01, "weight_decay": 0.1}
    found = trained(tiny_model, steps=2, batch_size=4, accumulation=1, **options)
    assert torch.equal(found, expected)


def test_one_without_weight_decay_works_without(
    tiny_model: LlamaForCausalLM, shard: ClientData, trained: Trained
) -> None:
    found = trained(tiny_model, steps=2, batch_size=4, accumulation=1, optimizer="rprop", learning_rate=0.01)
    assert torch.equal(found, by_hand(tiny_model, shard, lambda p: torch.optim.Rprop(p, lr=0.01)))


@pytest.mark.parametrize(
    ("options", "build"),
    [
        (
            {"optimizer": "adam", "options": {"betas": [0.5, 0.9], "eps": 1e-3, "amsgrad": True}},
            lambda p: torch.optim.Adam(p, 0.05, betas=(0.5, 0.9), eps=1e-3, amsgrad=True),
        ),
        (
            {"optimizer": "sgd", "momentum": 0.9, "options": {"nesterov": True}},
            lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
        ),
        (
            {"optimizer": "rmsprop", "options": {"momentum": 0.5, "alpha": 0}},
            lambda p: torch.optim.RMSprop(p, 0.05, momentum=0.5, alpha=0),
        ),
    ],
)
def test_its_own_options_reach_it(
    tiny_model: LlamaForCausalLM, shard: ClientData, trained: Trained, options: dict[str, object], build: Callable
) -> None:
    found = trained(tiny_model, steps=2, batch_size=4, accumulation=1, **options)
    assert torch.equal(found, by_hand(tiny_model, shard, build))


def test_options_survive_json() -> None:
    config = LocalConfig.model_validate({"options": {"betas": [0.5, 1e-3], "eps": 1, "amsgrad": True}})
    assert config.options == {"betas": (0.5, 1e-3), "eps": 1, "amsgrad": True}
    assert LocalConfig.model_validate_json(config.model_dump_json()) == config
    assert LocalConfig.model_validate(config.model_dump()) == config


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        ({"optimizer": "lion"}, "optimizer", "there is no optimizer 'lion': choose one of adadelta,"),
        ({"optimizer": "lbfgs"}, "optimizer", "lbfgs cannot be used, it computes the loss several times"),
        ({"optimizer": "sparseadam"}, "optimizer", "sparseadam cannot be used, it needs sparse gradients"),
        ({"options": {"beta": 1}}, "options", "beta is not an option of adam: choose from amsgrad, betas,"),
        ({"optimizer": "sgd", "options": {"momentum": 0.9}}, "options", "momentum is not an option of sgd"),
        ({"options": {"betas": 0.9}}, "options", r"betas = 0.9: adam takes 2 numbers, as \[0.9, 0.999\] by default"),
        ({"options": {"eps": True}}, "options", "eps = True: adam takes a number"),
        ({"options": {"amsgrad": 1}}, "options", "amsgrad = 1: adam takes true or false"),
        ({"options": {"betas": [1.5, 0.9]}}, "options", r"betas = \(1.5, 0.9\): adam takes numbers from 0 to below 1"),
        ({"optimizer": "sgd", "options": {"nesterov": True}}, "options", "nesterov = True needs a momentum above 0"),
        ({"optimizer": "rprop", "weight_decay": 0.1}, "", "weight_decay = 0.1: rprop has no weight decay"),
        ({"optimizer": "rmsprop", "momentum": 0.9}, "", "momentum = 0.9 needs optimizer = 'normalized' or 'sgd'"),
        ({"optimizer": "lion", "options": {"beta": 1}}, "optimizer", "there is no optimizer 'lion'"),
    ],
)
def test_what_an_optimizer_does_not_take_is_refused_by_name(
    options: dict[str, object], field: str, message: str
) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        LocalConfig.model_validate(options)
    assert [".".join(map(str, error["loc"])) for error in caught.value.errors()] == [field]
