"""A step's sequences pass through the model in parts: those of a part are of nearly one length, and fit the device.

The gradient of a mean over tokens is a sum over sequences, and so is the loss: whatever the parts, adding up is the
same mathematics. (Dropout alone draws its masks in another order.) Running out of memory halves the parts, until the
device has room for one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

import torch
from torch.nn.utils.rnn import pad_sequence

from ferret_core.datasets._client_data import IGNORED, Batch
from ferret_core.protocol.errors import FerretError
from ferret_core.system.out_of_memory import REMEDY, exhausted, is_out_of_memory

logger = logging.getLogger(__name__)

R = TypeVar("R")
_FILL = (0, 0, IGNORED)


class MicroBatches:
    """How many sequences go through the model at once: at first ``size``, then what has proved to fit."""

    def __init__(self, size: int) -> None:
        self.size = size

    def fit(self, work: Callable[[int], R], undo: Callable[[], object] = lambda: None) -> R:
        """What ``work(size)`` returns, at half the size after ``undo()`` whenever memory runs out.

        Raises ``memory.exhausted`` where a single sequence is too much.
        """
        while True:
            try:
                return work(self.size)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                lacking = exhausted(error, REMEDY)
            # Only here, where the error and the tensors that its frames hold are gone, is there memory again.
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
    """The sequences of ``group``, ``size`` at once, the longest first; a single batch that fits is left as it is.

    What is padding costs as much as what is text, and there is little of it among sequences of nearly one length.
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
    """Each without its padding: tensors of shape (tokens,)."""
    for row, length in enumerate(batch.attention_mask.sum(dim=1).tolist()):
        yield Batch(*(tensor[row, :length] for tensor in batch))


def _padded(sequences: Sequence[Batch]) -> Batch:
    """One batch of them. Which token they are filled up with makes no difference: it comes last, and is masked."""
    fields = zip(zip(*sequences, strict=True), _FILL, strict=True)
    return Batch(*(pad_sequence(list(field), batch_first=True, padding_value=by) for field, by in fields))


def randomness(device: torch.device) -> Callable[[], None]:
    """Puts the generators that dropout on ``device`` draws from back to where they are now."""
    on_cpu = torch.get_rng_state()
    on_gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def restore() -> None:
        torch.set_rng_state(on_cpu)
        if on_gpu is not None:
            torch.cuda.set_rng_state(on_gpu, device)

    return restore
