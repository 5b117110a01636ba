"""signSGD's options, and what its participants send: a bit for each parameter, and a scale for each tensor."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs._base import BITS, Size, check_bits, check_layouts, size_of
from ferret_core.algorithms.configs._norms import Norms
from ferret_core.models.shapes import Shapes, count, sizes
from ferret_core.projection.coordinates import Layout
from ferret_core.protocol.limits import MAX_REAL
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Contribution, malformed
from ferret_core.training.config import LocalConfig


class Config(Strict):
    """signSGD's options."""

    scale: Literal["mean"] | Annotated[float, Field(gt=0, le=MAX_REAL)] = Field(
        default="mean",
        description="How far a vote moves a weight at rate 1: the mean |update| of its tensor, or a fixed step",
    )
    error_feedback: bool = Field(default=False, description="Keep what a sign and its scale leave of the update")
    local: LocalConfig = LocalConfig()

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        arrays = contribution.arrays
        check_layouts(arrays, self._layouts(shapes))
        check_bits("signs", arrays["signs"], count(shapes))
        if "scales" in arrays and bool(np.signbit(arrays["scales"]).any()):
            raise malformed("scales", float(arrays["scales"].min()), "is negative")

    def size(self, shapes: Shapes) -> Size:
        return size_of(self._layouts(shapes))

    def _layouts(self, shapes: Shapes) -> dict[str, Layout]:
        expected = {"signs": Layout(BITS, (-(-count(shapes) // 8),))}
        if self.scale == "mean":
            expected["scales"] = Layout(np.dtype(np.float32), (len(shapes),))
        return expected

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        lengths = list(sizes(shapes).values())
        fixed = np.full(len(lengths), 0.0 if self.scale == "mean" else self.scale)
        scales = contribution.arrays.get("scales", fixed).astype(np.float64)
        return Norms.of(scales * np.sqrt(lengths), lengths)

    @property
    def comparable(self) -> bool:
        return False
