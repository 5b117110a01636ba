"""QSGD's options and contributions: one level per parameter, and one norm per bucket."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs._base import ContributionSize, check_layouts, check_metadata, size_of
from ferret_core.algorithms.configs._norms import Norms, dense_norms
from ferret_core.algorithms.configs._radix_packing import level_layout, unpack_levels
from ferret_core.algorithms.configs._traits import Traits
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.limits import MAX_ELEMENTS
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Array, Arrays, Contribution, malformed
from ferret_core.training.config import LOCAL, LocalConfig


class Config(StrictModel):
    """QSGD's options."""

    levels: int = Field(
        default=1,
        ge=1,
        le=127,
        description="s: an entry becomes one of −s … s; 1 takes 1.6 bits, 2 takes 2.4, 3 takes 2.9, 7 takes 4",
    )
    bucket: int = Field(default=512, ge=1, le=MAX_ELEMENTS, description="Consecutive entries that share a norm")
    norm: Literal["max", "l2"] = Field(
        default="max", description="max: the largest |entry|, as in the paper's experiments; l2: as in its theory"
    )
    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        d, arrays = count(shapes), contribution.arrays
        check_metadata(contribution, {"K": (d,)})
        check_layouts(arrays, self._layouts(d))
        unpack_levels(arrays["levels"], self.levels, d)
        if bool(np.signbit(arrays["norms"]).any()):
            raise malformed("norms", float(arrays["norms"].min()), "is negative")

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(self._layouts(count(shapes)), numbers=1)

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        return dense_norms(self.decoded(contribution.arrays, count(shapes)), shapes)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, decodable=True)

    def decoded(self, arrays: Arrays, d: int) -> Array:
        """Returns Q(m), fp32 (d,), with no entry above its bucket's norm; raises like ``unpack_levels``."""
        shares = unpack_levels(arrays["levels"], self.levels, d) / np.float32(self.levels)
        return shares * np.repeat(arrays["norms"], self.bucket_of(d))[:d]

    def bucket_of(self, d: int) -> int:
        """Returns the entries in a bucket; at most the number of the model's parameters."""
        return min(self.bucket, d)

    def _layouts(self, d: int) -> dict[str, Layout]:
        norms = Layout(np.dtype(np.float32), (-(-d // self.bucket_of(d)),))
        return {"levels": level_layout(self.levels, d), "norms": norms}
