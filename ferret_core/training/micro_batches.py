"""Micro-batches: a step's sequences pass through the model in parts of similar length that fit the device.

The gradient of a mean over tokens is a sum over sequences, and so is the loss: adding up any parts is mathematically
the same. (Only dropout draws its masks in another order.) Running out of memory halves the parts, down to one sequence,
and then checkpoints activations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
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
PADDING = 0.1
"""Maximum share of padding in the tokens of a pass; a pass of fewer sequences has less."""


class MicroBatches:
    """The number of sequences per pass: ``size`` at first, then the largest that fits.

    ``save`` is called once if a single sequence does not fit; it makes passes take less memory.
    """

    def __init__(self, size: int, save: Callable[[], object] | None = None) -> None:
        self.size = size
        self._save = save

    def fit(self, work: Callable[[int], R], undo: Callable[[], object] = lambda: None) -> R:
        """Returns ``work(size)``; whenever memory runs out, calls ``undo()`` and repeats with half the size.

        Raises ``memory.exhausted`` if a single sequence does not fit even so.
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
            self._shrink(lacking)

    def _shrink(self, lacking: FerretError) -> None:
        if self.size > 1:
            self.size //= 2
            logger.warning("out of memory: batches go through the model in parts of %d from here on", self.size)
        elif self._save is not None:
            self._save()
            self._save = None
            logger.warning("out of memory: activations are checkpointed from here on")
        else:
            raise lacking
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()


def micro_batches(group: Sequence[Batch], size: int) -> Iterator[Batch]:
    """Yields the sequences of ``group``, at most ``size`` per batch, the longest first.

    At most ``PADDING`` of a batch is padding, which costs as much as text. A single batch that fits stays unchanged.
    """
    if len(group) == 1 and len(group[0].input_ids) <= size and group[0].attention_mask.float().mean() >= 1 - PADDING:
        yield group[0]
        return
    sequences = list(chain.from_iterable(map(_sequences, group)))
    if size > 1:
        sequences.sort(key=lambda sequence: -len(sequence.input_ids))
    for part in _of_similar_length(sequences, size):
        yield _padded(part)


def _of_similar_length(sequences: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    part: list[Batch] = []
    tokens = 0
    for sequence in sequences:
        length = len(sequence.input_ids)
        computed = (len(part) + 1) * len(part[0].input_ids) if part else length
        if len(part) == size or tokens + length < (1 - PADDING) * computed:
            yield part
            part, tokens = [], 0
        part.append(sequence)
        tokens += length
    yield part


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
