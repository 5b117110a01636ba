from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from transformers import LlamaForCausalLM

from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train
from tests.refusals import refused

Trained = Callable[..., torch.Tensor]
PLAIN = LocalConfig(optimizer="sgd", learning_rate=0.05, steps=3, batch_size=2, accumulation=1)
IN_BACKWARD = PLAIN.model_copy(update={"optimizer_in_backward": True})


def untied(model: LlamaForCausalLM) -> LlamaForCausalLM:
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    return model


def half_frozen(model: LlamaForCausalLM) -> LlamaForCausalLM:
    model.model.layers[0].requires_grad_(False)
    model.model.norm.requires_grad_(False)
    return model


def gradients(model: LlamaForCausalLM) -> list[torch.Tensor]:
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("change", [lambda model: model, untied, half_frozen], ids=["tied", "untied", "frozen"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_decay": 0.1},
        {"precision": "bfloat16"},
        {"activation_checkpointing": True},
        {"options": {"maximize": True}},
        {"optimizer": "normalized"},
        {"optimizer": "normalized", "options": {"normalize_per": "column"}},
    ],
    ids=str,
)
@pytest.mark.heavy
def test_it_moves_the_weights_as_ordinary_steps_do(
    tiny_model: LlamaForCausalLM,
    trained: Trained,
    change: Callable[[LlamaForCausalLM], LlamaForCausalLM],
    options: dict[str, object],
) -> None:
    model = change(tiny_model)
    options = {"batch_size": 2, "accumulation": 1, **options}
    ordinary = trained(model, **options)
    assert torch.equal(trained(model, **options, optimizer_in_backward=True), ordinary)
    assert not torch.equal(trained(model, **options, steps=1), ordinary)


def test_it_reports_what_ordinary_steps_do(tiny_model: LlamaForCausalLM, shard: ClientData) -> None:
    ordinary = train(copy.deepcopy(tiny_model), shard.batches(2, 5), PLAIN)
    assert train(tiny_model, shard.batches(2, 5), IN_BACKWARD) == ordinary


@pytest.mark.parametrize(("config", "most"), [(PLAIN, 1.0), (IN_BACKWARD, None)])
def test_at_most_one_gradient_is_held(
    tiny_model: LlamaForCausalLM, shard: ClientData, config: LocalConfig, most: float | None
) -> None:
    """Every time a gradient is complete; ordinary training, beside it, ends up with all of them."""
    sizes = [parameter.nbytes for parameter in tiny_model.parameters()]
    held: list[int] = []
    for parameter in tiny_model.parameters():
        parameter.register_post_accumulate_grad_hook(
            lambda _: held.append(sum(gradient.nbytes for gradient in gradients(tiny_model)))
        )
    train(tiny_model, shard.batches(2, 5), config)
    assert len(held) == 3 * len(sizes)
    assert max(held) == (max(sizes) if most is None else most * sum(sizes))


def test_afterwards_backward_passes_are_ordinary_again(tiny_model: LlamaForCausalLM, shard: ClientData) -> None:
    def interrupt(step: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tiny_model, shard.batches(2, 5), IN_BACKWARD, interrupt)
    before = tiny_model.model.norm.weight.detach().clone()
    batch = next(shard.batches(2, 5))
    tiny_model(**batch._asdict()).loss.backward()
    assert len(gradients(tiny_model)) == len(list(tiny_model.parameters()))
    assert torch.equal(tiny_model.model.norm.weight, before)


def test_a_loss_that_is_no_number_moves_nothing(tiny_model: Any, shard: ClientData) -> None:
    with torch.no_grad():
        tiny_model.model.layers[0].mlp.up_proj.weight[0, 0] = math.nan
    before = copy.deepcopy(tiny_model.state_dict())
    with refused("training.non_finite", "at local step 1 of 3 the loss is nan: lower it, or lower the"):
        train(tiny_model, shard.batches(2, 5), IN_BACKWARD)
    for name, tensor in tiny_model.state_dict().items():
        assert torch.equal(tensor.nan_to_num(), before[name].nan_to_num())


def test_a_gradient_that_is_no_number_ends_the_training_too(tiny_model: LlamaForCausalLM, shard: ClientData) -> None:
    tiny_model.model.norm.weight.register_hook(lambda gradient: gradient * math.inf)
    with refused("training.non_finite", "step 1 of 3 the loss is", "its gradient's norm", "inf"):
        train(tiny_model, shard.batches(2, 5), IN_BACKWARD)


def test_gradients_that_are_never_whole_cannot_be_corrected(tiny_model: LlamaForCausalLM, shard: ClientData) -> None:
    with refused("spec.invalid", "optimizer_in_backward = True"):
        train(tiny_model, shard.batches(2, 5), IN_BACKWARD, correct=lambda: None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "adam"}, "needs optimizer = 'normalized' or 'sgd'$"),
        ({"momentum": 0.9}, "needs momentum = 0$"),
        ({"accumulation": 4}, "needs accumulation = 1$"),
        ({"clip_norm": 1.0}, "needs no clip_norm$"),
        ({"clip_norm": 1.0, "accumulation": 2}, "needs accumulation = 1, no clip_norm$"),
    ],
)
def test_what_needs_whole_gradients_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        LocalConfig.model_validate(IN_BACKWARD.model_dump() | options)
    (error,) = caught.value.errors()
    assert error["msg"].startswith("Value error, optimizer_in_backward = True holds no whole gradient: it ")
    assert error["msg"].endswith(message.removesuffix("$"))
