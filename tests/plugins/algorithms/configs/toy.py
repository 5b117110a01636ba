"""The toy's options, and what its participants send: one number."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs.base import ContributionSize, check_layouts, size_of
from ferret_core.algorithms.configs.norms import Norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, sizes
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import LOCAL, LocalConfig

SENT = {"mean": Layout(np.dtype(np.float32), (1,))}


class Config(StrictModel):
    """The toy's options."""

    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, SENT)

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(SENT)

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        lengths, step = list(sizes(shapes).values()), abs(float(contribution.arrays["mean"][0]))
        return Norms.of([step * math.sqrt(length) for length in lengths], lengths)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, comparable=True, decodable=True)
