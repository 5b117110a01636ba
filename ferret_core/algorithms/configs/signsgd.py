"""signSGD's options, and what its participants send: a bit for each parameter, and a scale for each tensor."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs._base import BITS, check_bits, check_layouts
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection.coordinates import Layout
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Contribution, malformed
from ferret_core.training.config import LocalConfig


class Config(Strict):
    """signSGD's options."""

    scale: Literal["mean"] | Annotated[float, Field(gt=0)] = Field(
        default="mean",
        description="How far a vote moves a weight at rate 1: the mean |update| of its tensor, or a fixed step",
    )
    error_feedback: bool = Field(default=False, description="Keep what a sign and its scale leave of the update")
    local: LocalConfig = LocalConfig()

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        arrays, d = contribution.arrays, count(shapes)
        expected = {"signs": Layout(BITS, (-(-d // 8),))}
        if self.scale == "mean":
            expected["scales"] = Layout(np.dtype(np.float32), (len(shapes),))
        check_layouts(arrays, expected)
        check_bits("signs", arrays["signs"], d)
        if "scales" in arrays and bool(np.signbit(arrays["scales"]).any()):
            raise malformed("scales", float(arrays["scales"].min()), "is negative")
