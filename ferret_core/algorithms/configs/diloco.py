"""DiLoCo's options and contributions: the update, in fp32, fp16 or int8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from ferret_core.algorithms.configs.base import AdamW, ContributionSize, check_layouts, size_of
from ferret_core.algorithms.configs.norms import Norms, norm
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, count, sizes
from ferret_core.projection.coordinate_encoding import Layout, decode, layouts
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.config import LOCAL


class Config(StrictModel):
    """DiLoCo's options; the outer optimizer is the specification's ``[server]``."""

    coordinates: Literal["float32", "float16", "int8"] = Field(
        default="float32", description="Encoding of a pseudo-gradient; float16 and int8 with one scale per tensor"
    )
    local: AdamW = Field(default=AdamW(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, self._layouts(shapes))
        self.tensors(contribution.arrays, list(sizes(shapes).values()))

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(self._layouts(shapes))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        lengths = list(sizes(shapes).values())
        return Norms.of(map(norm, self.tensors(contribution.arrays, lengths)), lengths)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, comparable=True, decodable=True, shardable=True)

    def tensors(self, arrays: Arrays, lengths: list[int]) -> Sequence[Array]:
        """Returns the update of each tensor, fp32; raises like ``coordinates.decode``."""
        return decode(arrays, self.coordinates, lengths)

    def _layouts(self, shapes: Shapes) -> dict[str, Layout]:
        return layouts(self.coordinates, count(shapes), 0, len(shapes))
