from __future__ import annotations

import pytest
import torch
from transformers import LlamaForCausalLM

from ferret_core.datasets._base import Encoded, Shard
from ferret_core.evaluation.loss import mean_loss
from ferret_core.protocol.errors import FerretError
from tests.ferret_core.small_device import small

SHARD = Shard([Encoded([0, 3 + i], [20 + k for k in range(1 + i)] + [1]) for i in range(7)], pad_id=2)


def test_it_is_the_mean_over_tokens_not_over_examples(tiny_model: LlamaForCausalLM) -> None:
    with torch.no_grad():
        whole = tiny_model(**next(SHARD.ordered(7))._asdict()).loss.item()
    for size in (1, 3, 7):
        assert mean_loss(tiny_model, SHARD, size) == pytest.approx(whole, rel=1e-5)


def test_it_repeats_to_the_bit_ignores_dropout_and_keeps_the_mode(tiny_model: LlamaForCausalLM) -> None:
    first = mean_loss(tiny_model, SHARD, 3)
    tiny_model.model.layers[0].self_attn.attention_dropout = 0.5
    assert mean_loss(tiny_model.train(), SHARD, 3) == first
    assert tiny_model.training


def test_a_model_out_of_range_says_what_to_lower(tiny_model: LlamaForCausalLM) -> None:
    with torch.no_grad():
        tiny_model.model.norm.weight.fill_(torch.inf)
    with pytest.raises(FerretError, match=r"lower server\.learning_rate") as caught:
        mean_loss(tiny_model, SHARD, 3)
    assert caught.value.code == "training.non_finite"


@pytest.mark.parametrize("room", [1, 3])
def test_a_small_device_measures_the_same(tiny_model: LlamaForCausalLM, room: int) -> None:
    assert mean_loss(small(tiny_model, room), SHARD, 7) == pytest.approx(mean_loss(tiny_model, SHARD, 7), rel=1e-5)


def test_one_sequence_that_does_not_fit_is_said(tiny_model: LlamaForCausalLM) -> None:
    with pytest.raises(FerretError) as caught:
        mean_loss(small(tiny_model, 0), SHARD, 7)
    assert caught.value.code == "memory.exhausted"
