"""DeMo's options and contributions: places and signs of coefficients, and a scale."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs._chunks import SIDE, SparseChunks, position_layout, unpack_positions
from ferret_core.algorithms.configs.base import BITS, check_bits, check_layouts
from ferret_core.algorithms.configs.norms import Norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, sizes
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Contribution, malformed
from ferret_core.training.config import LOCAL, LocalConfig


class Config(SparseChunks):
    """DeMo's options; defaults of density and decay are from the 40B run."""

    default_density: ClassVar[float] = 4 / SIDE**2

    decay: float = Field(default=0.995, ge=0, le=1, description="Decay β of the residual momentum per round")
    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        chunks, arrays = self.chunks(shapes), contribution.arrays
        entries = sum(chunks.entries)
        check_layouts(arrays, self.layouts(entries, len(shapes)))
        check_bits("signs", arrays["signs"], entries)
        unpack_positions(arrays["positions"], chunks)
        if np.signbit(scale := arrays["scale"][0]):
            raise malformed("scale", float(scale), "is negative")

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns the norms: every weight moves by the scale, because every chunk has a coefficient."""
        lengths = list(sizes(shapes).values())
        return Norms.of(float(contribution.arrays["scale"][0]) * np.sqrt(lengths), lengths)

    @property
    def traits(self) -> Traits:
        return Traits(
            first_order=self.local,
            sparse=True,
            nonlinear=True,
            participant_vectors=1,
            aggregation_vectors=6,
            decodable=True,
        )

    def layouts(self, entries: int, tensors: int) -> dict[str, Layout]:
        return {
            "positions": position_layout(entries),
            "signs": Layout(BITS, (-(-entries // 8),)),
            "scale": Layout(np.dtype(np.float32), (1,)),
        }
