"""Micro-batches: a step's sequences pass through the model in parts of similar length that fit the device.

The gradient of a mean over tokens is a sum over sequences, and so is the loss: adding up any parts is mathematically
the same. (Only dropout draws its masks in another order.) Running out of memory halves the parts, down to one sequence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import torch
from torch.nn.utils.rnn import pad_sequence

from ferret_core.datasets.tokenization.client_data import IGNORED, Batch
from ferret_core.protocol.errors import FerretError
from ferret_core.system.device import REMEDY, exhausted, is_out_of_memory

logger = logging.getLogger(__name__)

R = TypeVar("R")
_FILL = (0, 0, IGNORED)


class MicroBatches:
    """The number of sequences per pass: ``size`` at first, then the largest that fits."""

    def __init__(self, size: int) -> None:
        self.size = size

    def fit(self, work: Callable[[int], R], undo: Callable[[], object] = lambda: None) -> R:
        """Returns ``work(size)``; whenever memory runs out, calls ``undo()`` and repeats with half the size.

        Raises ``memory.exhausted`` if a single sequence does not fit.
        """
        while True:
            try:
                return work(self.size)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                lacking = exhausted(error, REMEDY)
            # Memory is free only here, where the error and the tensors in its frames are gone.
            undo()
            self._halve(lacking)

    def _halve(self, lacking: FerretError) -> None:
        if self.size == 1:
            raise lacking
        self.size //= 2
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
        logger.warning("out of memory: batches go through the model in parts of %d from here on", self.size)


def micro_batches(group: Sequence[Batch], size: int) -> Iterator[Batch]:
    """Yields the sequences of ``group``, ``size`` per batch, the longest first; a single batch that fits stays
    unchanged.

    Padding costs as much as text, and sequences of similar length need little of it.
    """
    if len(group) == 1 and len(group[0].input_ids) <= size:
        yield group[0]
        return
    sequences = list(chain.from_iterable(map(_sequences, group)))
    if size > 1:
        sequences.sort(key=lambda sequence: -len(sequence.input_ids))
    for start in range(0, len(sequences), size):
        yield _padded(sequences[start : start + size])


def _sequences(batch: Batch) -> Iterator[Batch]:
    """Yields each sequence without its padding: tensors of shape (tokens,)."""
    for row, length in enumerate(batch.attention_mask.sum(dim=1).tolist()):
        yield Batch(*(tensor[row, :length] for tensor in batch))


def _padded(sequences: Sequence[Batch]) -> Batch:
    """Pads sequences to one batch. The padding token makes no difference: it comes last, and is masked."""
    fields = zip(zip(*sequences, strict=True), _FILL, strict=True)
    return Batch(*(pad_sequence(list(field), batch_first=True, padding_value=by) for field, by in fields))


def randomness(device: torch.device) -> Callable[[], None]:
    """Returns a function that restores the generators of dropout on ``device`` to their current state."""
    on_cpu = torch.get_rng_state()
    on_gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def restore() -> None:
        torch.set_rng_state(on_cpu)
        if on_gpu is not None:
            torch.cuda.set_rng_state(on_gpu, device)

    return restore
