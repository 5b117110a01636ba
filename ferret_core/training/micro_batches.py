"""Running out of memory: a batch is passed through in halves, until the device has room for one.

The gradient of a mean over tokens is a sum over sequences, and so is the loss: passing a batch through in parts and
adding up is the same mathematics, in less memory and more time. (Dropout alone draws its masks in another order.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from ferret_core.datasets._shard import Batch
from ferret_core.memory import REMEDY, exhausted, is_out_of_memory
from ferret_core.protocol.errors import FerretError

logger = logging.getLogger(__name__)

R = TypeVar("R")


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
    """The sequences of ``group`` in order, at most ``size`` at once and none across two batches.

    A part of a batch leaves out the columns that are padding for all of it.
    """
    for batch in group:
        count = len(batch.input_ids)
        if count <= size:
            yield batch
            continue
        for start in range(0, count, size):
            rows = slice(start, start + size)
            width = int(batch.attention_mask[rows].sum(dim=1).max())
            yield Batch(*(tensor[rows, :width] for tensor in batch))


def randomness(device: torch.device) -> Callable[[], None]:
    """Puts the generators that dropout on ``device`` draws from back to where they are now."""
    on_cpu = torch.get_rng_state()
    on_gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def restore() -> None:
        torch.set_rng_state(on_cpu)
        if on_gpu is not None:
            torch.cuda.set_rng_state(on_gpu, device)

    return restore
