from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.evaluation.evaluate import total_loss
from tests.ferret_core.memory_limited_device import small
from tests.refusals import refused

SHARD = ClientData([Encoded([0, 3 + i], [20 + k for k in range(1 + i)] + [1]) for i in range(7)], pad_id=2)


def test_it_is_the_mean_over_tokens_not_over_examples(tiny_model: LlamaForCausalLM) -> None:
    with torch.no_grad():
        whole = tiny_model(**next(SHARD.ordered(7))._asdict()).loss.item()
    for size in (1, 3, 7):
        assert total_loss(tiny_model, SHARD, size).mean == pytest.approx(whole, rel=1e-5)


def test_it_repeats_to_the_bit_ignores_dropout_and_keeps_the_mode(tiny_model: Any) -> None:
    first = total_loss(tiny_model, SHARD, 3).mean
    tiny_model.model.layers[0].self_attn.attention_dropout = 0.5
    assert total_loss(tiny_model.train(), SHARD, 3).mean == first
    assert tiny_model.training


def test_a_model_out_of_range_says_what_to_lower(tiny_model: LlamaForCausalLM) -> None:
    with torch.no_grad():
        tiny_model.model.norm.weight.fill_(torch.inf)
    with refused("training.non_finite", "server.learning_rate"):
        total_loss(tiny_model, SHARD, 3)


@pytest.mark.parametrize("room", [1, 3])
def test_a_small_device_measures_the_same(tiny_model: LlamaForCausalLM, room: int) -> None:
    assert total_loss(small(tiny_model, room), SHARD, 7).mean == pytest.approx(
        total_loss(tiny_model, SHARD, 7).mean, rel=1e-5
    )


def test_one_sequence_that_does_not_fit_is_said(tiny_model: LlamaForCausalLM) -> None:
    with refused("memory.exhausted"):
        total_loss(small(tiny_model, 0), SHARD, 7)
