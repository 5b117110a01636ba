"""FetchSGD's options and contributions: a count sketch of the update."""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from ferret_core.algorithms.configs.base import ContributionSize, check_layouts, size_of
from ferret_core.algorithms.configs.norms import Norms, norm
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_BYTES, MAX_ELEMENTS
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import LOCAL, LocalConfig


class Config(StrictModel):
    """FetchSGD's options; ``columns`` and ``bytes_per_round`` exclude each other."""

    rows: int = Field(default=5, ge=1, le=64, description="Rows of the sketch; an estimate is the median over them")
    columns: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ELEMENTS,
        description="Columns of the sketch; 1/13 of the parameters without bytes_per_round",
        json_schema_extra={"excludes": ["bytes_per_round"]},
    )
    bytes_per_round: int | None = Field(
        default=None,
        ge=1,
        le=MAX_BYTES,
        description="Bytes per participant and round, 4 for each cell of the sketch",
        json_schema_extra={"excludes": ["columns"]},
    )
    k: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ELEMENTS,
        description="Entries of the model that a round moves; by default a tenth of the columns",
    )
    momentum: float = Field(default=0.9, ge=0, lt=1, description="Momentum ρ over the rounds, in the sketch")
    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.columns is not None and self.bytes_per_round is not None:
            raise ValueError(
                f"columns = {self.columns} and bytes_per_round = {self.bytes_per_round} exclude each other: give one"
            )
        return self

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, self._layouts(shapes))

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(self._layouts(shapes))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns one norm per row of the sketch; each is about the norm of the whole update."""
        return Norms.of(map(norm, contribution.arrays["sketch"]), [count(shapes)] * self.rows)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, sparse=True, nonlinear=True, carries_over=True, aggregation_vectors=5)

    def columns_for(self, d: int) -> int:
        """Returns the sketch's columns for d parameters; raises ``spec.invalid`` if not one fits the budget."""
        if self.bytes_per_round is None:
            return self.columns or max(1, d // 13)
        columns = self.bytes_per_round // (4 * self.rows)
        if columns == 0:
            reason = f"the smallest possible is {4 * self.rows} for {self.rows} rows"
            raise FerretError.of_field("spec.invalid", "algorithm.bytes_per_round", self.bytes_per_round, reason)
        return columns

    def moved(self, d: int) -> int:
        """Returns k; at most the number of the model's parameters."""
        return min(self.k or max(1, self.columns_for(d) // 10), d)

    def _layouts(self, shapes: Shapes) -> dict[str, Layout]:
        return {"sketch": Layout(np.dtype(np.float32), (self.rows, self.columns_for(count(shapes))))}
