"""Whether sequences can be shared out; that steps are those of one process is tested in tests/ferret_core/sharded."""

from __future__ import annotations

from torch import nn
from transformers import LlamaForCausalLM

from ferret_core.training.sharded_training import draws


def test_a_model_with_dropout_draws_and_one_without_does_not(tiny_model: LlamaForCausalLM) -> None:
    assert not draws(tiny_model)
    assert draws(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1)))
    assert not draws(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0)))
    tiny_model.config.attention_dropout = 0.1
    assert draws(tiny_model)
