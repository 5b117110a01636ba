"""One participant's tokenised examples, and batches of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

import numpy as np
import torch

from ferret_core.protocol.errors import FerretError

IGNORED = -100
"""Label of a token without loss."""


class Batch(NamedTuple):
    """Right-padded token ids, int64 of shape (sequences, tokens); ``labels`` are -100 for tokens without loss."""

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    labels: torch.Tensor


class Encoded(NamedTuple):
    """A tokenised example with two non-empty parts; the response ends with the end-of-text token unless it was cut."""

    prompt: list[int]
    response: list[int]


@dataclass(frozen=True)
class ClientData:
    """A participant's tokenised examples, ``truncated`` of them cut. Raises ``partition.invalid`` without examples."""

    examples: Sequence[Encoded]
    pad_id: int
    truncated: int = 0

    def __post_init__(self) -> None:
        if not self.examples:
            raise FerretError("partition.invalid", "a shard has no examples: use fewer participants or more data")

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def longest(self) -> int:
        """Tokens of the longest example."""
        return max(len(prompt) + len(response) for prompt, response in self.examples)

    def batches(self, size: int, seed: int) -> Iterator[Batch]:
        """Yields batches of exactly ``size`` sequences without end; ``seed`` determines the order.

        Examples come in passes, each a new permutation of the whole shard; a batch may span two passes, so a shard
        smaller than a batch repeats its examples.
        """
        rng = np.random.Generator(np.random.PCG64(seed))
        order = (index for _ in count() for index in rng.permutation(len(self)).tolist())
        while True:
            yield self.batch(islice(order, size))

    def ordered(self, size: int) -> Iterator[Batch]:
        """Yields every example once, longest first (the largest batch fails first); the last batch may be smaller."""
        lengths = [len(prompt) + len(response) for prompt, response in self.examples]
        order = sorted(range(len(self)), key=lambda index: -lengths[index])
        for start in range(0, len(self), size):
            yield self.batch(order[start : start + size])

    def batch(self, indices: Iterator[int] | Sequence[int]) -> Batch:
        """Returns the examples at these positions as one batch."""
        chosen = [self.examples[index] for index in indices]
        shape = len(chosen), max(len(prompt) + len(response) for prompt, response in chosen)
        input_ids = torch.full(shape, self.pad_id)
        attention_mask = torch.zeros(shape, dtype=torch.int64)
        labels = torch.full(shape, IGNORED)
        for row, (prompt, response) in enumerate(chosen):
            end = len(prompt) + len(response)
            input_ids[row, :end] = torch.tensor(prompt + response)
            attention_mask[row, :end] = 1
            labels[row, len(prompt) : end] = torch.tensor(response)
        return Batch(input_ids, attention_mask, labels)
