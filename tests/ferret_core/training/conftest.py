"""A shard to train on, and what training on it made of a model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train

SHARD = ClientData([Encoded([0, 3 + i, 4], [20 + 7 * i + k for k in range(30 + i)] + [1]) for i in range(6)], pad_id=2)
"""Six examples, the first with 31 response tokens, each other with one more than the one before."""


@pytest.fixture
def shard() -> ClientData:
    return SHARD


def with_dropout(model: Any) -> LlamaForCausalLM:
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.3
    return model


@pytest.fixture
def trained(shard: ClientData) -> Callable[..., torch.Tensor]:
    """``trained(model, steps=2)``: all weights of a copy of ``model`` after local training with these options."""

    def run(model: LlamaForCausalLM, **options: object) -> torch.Tensor:
        config = LocalConfig.model_validate({"learning_rate": 0.05, "steps": 3, "optimizer": "sgd", **options})
        moved = copy.deepcopy(model)
        train(moved, shard.batches(config.batch_size, 5), config, seed=3)
        return torch.cat([parameter.detach().reshape(-1) for parameter in moved.parameters()])

    return run
