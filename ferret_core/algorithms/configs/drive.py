"""DRIVE's options and contributions: one bit per rotated parameter, and one scale per chunk."""

from __future__ import annotations

import math
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ferret_core.algorithms.configs.base import BITS, ContributionSize, check_layouts, check_metadata, size_of
from ferret_core.algorithms.configs.norms import Norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Contribution, malformed
from ferret_core.training.config import LOCAL, LocalConfig

CHUNK = 4096
"""Entries that are rotated together; the last chunk is padded with zeros."""


class Config(StrictModel):
    """DRIVE's options."""

    scale: Literal["unbiased", "biased"] = Field(
        default="unbiased",
        description="unbiased: errors average out over participants and rounds; biased: each participant's error is "
        "minimal",
    )
    error_feedback: bool = Field(
        default=False, description="Keep the part of the update that signs and scales lose; needs scale = 'biased'"
    )
    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.error_feedback and self.scale == "unbiased":
            raise ValueError(
                "error_feedback = true needs scale = 'biased', not 'unbiased', under which a participant may keep more "
                "than there was, and the memories grow"
            )
        return self

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_metadata(contribution, {"projection": FORMAT_VERSION, "seed": task.seed})
        check_layouts(contribution.arrays, self._layouts(shapes))
        scales = contribution.arrays["scales"]
        if bool(np.signbit(scales).any()):
            raise malformed("scales", float(scales.min()), "is negative")

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(self._layouts(shapes))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns one norm per chunk, because rotation preserves norms; the last one includes its padding."""
        scales, d = contribution.arrays["scales"].astype(np.float64), count(shapes)
        lengths = [min(CHUNK, d - start) for start in range(0, d, CHUNK)]
        return Norms.of(scales * math.sqrt(CHUNK), lengths)

    @property
    def traits(self) -> Traits:
        return Traits(
            first_order=self.local, participant_vectors=self.error_feedback, aggregation_vectors=6, decodable=True
        )

    def _layouts(self, shapes: Shapes) -> dict[str, Layout]:
        chunks = -(-count(shapes) // CHUNK)
        return {"signs": Layout(BITS, (chunks * CHUNK // 8,)), "scales": Layout(np.dtype(np.float32), (chunks,))}
