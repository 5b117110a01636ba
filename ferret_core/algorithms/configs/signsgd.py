"""signSGD's options and contributions: one bit per parameter, and one scale per tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

import numpy as np
from pydantic import Field, model_validator

from ferret_core.algorithms.configs.base import BITS, ContributionSize, check_bits, check_layouts, size_of
from ferret_core.algorithms.configs.norms import Norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, count, sizes
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.limits import MAX_REAL
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Contribution, malformed
from ferret_core.training.config import LOCAL, LocalConfig


class Config(StrictModel):
    """signSGD's options."""

    scale: Literal["mean"] | Annotated[float, Field(gt=0, le=MAX_REAL)] = Field(
        default="mean",
        description="Move of a weight by a vote at rate 1: the mean |update| of its tensor, or a fixed step",
    )
    aggregation: Literal["vote", "mean"] | None = Field(
        default=None,
        description="vote: the majority's sign at the mean scale; mean: the mean of all participants' signs and "
        "scales. Default: vote, or mean with error_feedback",
    )
    error_feedback: bool = Field(
        default=False,
        description="EF-signSGD: keep the part of the update that signs and scales lose; needs aggregation = 'mean'",
        json_schema_extra={"excludes": ["aggregation"]},
    )
    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Fills in the aggregation, so that a stored specification is explicit."""
        if not isinstance(options, Mapping):
            return options
        given = cast(Mapping[str, Any], options)
        if given.get("aggregation") is not None:
            return given
        return {**given, "aggregation": "mean" if given.get("error_feedback") is True else "vote"}

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.error_feedback and self.aggregation == "vote":
            raise ValueError(
                "error_feedback = true and aggregation = 'vote' exclude each other: no participant knows what a "
                "vote discards; use aggregation = 'mean', or error_feedback = false"
            )
        return self

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        arrays = contribution.arrays
        check_layouts(arrays, self._layouts(shapes))
        check_bits("signs", arrays["signs"], count(shapes))
        if "scales" in arrays and bool(np.signbit(arrays["scales"]).any()):
            raise malformed("scales", float(arrays["scales"].min()), "is negative")

    def size(self, shapes: Shapes) -> ContributionSize:
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
    def traits(self) -> Traits:
        return Traits(
            first_order=self.local,
            nonlinear=self.aggregation == "vote",
            participant_vectors=self.error_feedback,
            decodable=True,
        )
