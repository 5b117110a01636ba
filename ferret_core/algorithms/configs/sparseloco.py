"""SparseLoCo's options and contributions: places and bins of entries, and the mean value of each bin."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs._chunks import Chunks, SparseChunks, position_layout, unpack_positions
from ferret_core.algorithms.configs.base import BITS, check_bits, check_layouts
from ferret_core.algorithms.configs.norms import Norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, sizes
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.config import LOCAL, LocalConfig
from ferret_core.training.optimizer_options import OptimizerName

BINS = 4


class AdamW(LocalConfig):
    """Local AdamW, the authors' inner optimizer."""

    optimizer: OptimizerName = Field(
        default="adamw", description="First-order method: from torch.optim, or one of Ferret's own"
    )


class Config(SparseChunks):
    """SparseLoCo's options; defaults of density and decay are the authors'."""

    default_density: ClassVar[float] = 1 / 64

    decay: float = Field(default=0.95, ge=0, le=1, description="Decay β of the error memory per round")
    local: AdamW = Field(default=AdamW(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        chunks, arrays = self.chunks(shapes), contribution.arrays
        entries = sum(chunks.entries)
        check_layouts(arrays, self.layouts(entries, len(shapes)))
        check_bits("bins", arrays["bins"], 2 * entries)
        unpack_positions(arrays["positions"], chunks)

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        lengths = list(sizes(shapes).values())
        return Norms.of(tensor_norms(self.values(contribution.arrays, chunks := self.chunks(shapes)), chunks), lengths)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, sparse=True, nonlinear=True, participant_vectors=1, decodable=True)

    def layouts(self, entries: int, tensors: int) -> dict[str, Layout]:
        return {
            "positions": position_layout(entries),
            "bins": Layout(BITS, (-(-entries * 2 // 8),)),
            "means": Layout(np.dtype(np.float32), (tensors, BINS)),
        }

    def values(self, arrays: Arrays, chunks: Chunks) -> Array:
        """Returns fp32 (K,): the decoded entries, in the order of their places."""
        high, low = np.unpackbits(arrays["bins"], count=2 * len(chunks.tensors)).reshape(-1, 2).T
        return arrays["means"][chunks.tensors, 2 * high + low]


def tensor_norms(values: Array, chunks: Chunks) -> Array:
    """Returns fp64, one per tensor: the L2 norm of its sent entries."""
    return np.sqrt(np.bincount(chunks.tensors, np.square(values, dtype=np.float64), len(chunks.cuts)))
