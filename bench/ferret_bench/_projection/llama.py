"""LLaMA models with random weights: shapes from their published configurations, nothing to download."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from time import perf_counter
from typing import NamedTuple, cast

import torch
from torch import nn

from ferret_core.datasets.tokenization.client_data import Batch
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train


class Shape(NamedTuple):
    """Sizes of a LLaMA; ``tied``: the output layer is the embedding."""

    name: str
    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocabulary: int
    tied: bool = False

    @property
    def elements(self) -> int:
        """Parameters: attention and MLP matrices and two norms per layer, the last norm, embedding and output."""
        layer = 4 * self.hidden**2 + 3 * self.hidden * self.intermediate + 2 * self.hidden
        embeddings = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return self.layers * layer + self.hidden + embeddings


TOY = Shape("LLaMA-toy", 64, 2, 4, 160, 512, tied=True)
SMALL = (
    TOY,
    Shape("LLaMA-15M", 288, 6, 6, 768, 32_000, tied=True),
    Shape("LLaMA-110M", 768, 12, 12, 2048, 32_000, tied=True),
    Shape("LLaMA-340M", 1024, 24, 16, 2816, 32_000, tied=True),
    Shape("LLaMA-1.3B", 2048, 24, 16, 5504, 32_000),
)
"""Models to train without a GPU, in ascending size."""
THREE_BILLION = Shape("LLaMA-3B", 3200, 26, 32, 8640, 32_000)
SEVEN_BILLION = Shape("LLaMA-7B", 4096, 32, 32, 11008, 32_000)


def random_llama(shape: Shape, device: torch.device, dtype: torch.dtype = torch.float32) -> nn.Module:
    """A model of this shape on ``device``, initialised as transformers does."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        tie_word_embeddings=shape.tied,
    )
    with device:
        return cast(nn.Module, LlamaForCausalLM(config)).to(dtype=dtype)


def random_batches(shape: Shape, sequences: int, tokens: int) -> Iterator[Batch]:
    """Yields the same random batch endlessly, with a loss on every token."""
    ids = torch.randint(shape.vocabulary, (sequences, tokens))
    return repeat(Batch(ids, torch.ones_like(ids), ids))


def seconds_per_step(model: nn.Module, batches: Iterator[Batch], config: LocalConfig) -> float:
    """Trains ``config.steps`` steps, at least 2. Returns the mean over all except the first, which warms up."""
    ends: list[float] = []
    train(model, batches, config, lambda _: ends.append(perf_counter()))
    return (ends[-1] - ends[0]) / (len(ends) - 1)
