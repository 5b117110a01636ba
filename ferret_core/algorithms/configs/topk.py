"""Top-K's options and contributions: places and values of the largest entries."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Self, cast

import numpy as np
from pydantic import Field, model_validator

from ferret_core.algorithms.configs._elias_fano import index_layouts, unpack_indices
from ferret_core.algorithms.configs.base import ContributionSize, check_layouts, size_of
from ferret_core.algorithms.configs.norms import Norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, count, sizes
from ferret_core.projection.coordinate_encoding import Layout, Precision, decode, layouts
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_BYTES, MAX_ELEMENTS
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Array, Arrays, Contribution
from ferret_core.training.config import LOCAL, LocalConfig

DEFAULT_FRACTION = 0.01


class Config(StrictModel):
    """Top-K's options; at most one of ``fraction``, ``K`` and ``bytes_per_round`` is given."""

    fraction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="K as a share of the parameters; 0.01 without K and bytes_per_round",
        json_schema_extra={"excludes": ["K", "bytes_per_round"]},
    )
    K: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ELEMENTS,
        description="Entries sent; replaces fraction",
        json_schema_extra={"excludes": ["fraction", "bytes_per_round"]},
    )
    bytes_per_round: int | None = Field(
        default=None,
        ge=1,
        le=MAX_BYTES,
        description="Bytes per participant and round, filled with entries; replaces fraction",
        json_schema_extra={"excludes": ["fraction", "K"]},
    )
    coordinates: Precision = Field(default="float16", description="Encoding of a value")
    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Fills in the default fraction, so that a stored specification is explicit."""
        if not isinstance(options, Mapping):
            return options
        given = {name: value for name, value in cast(Mapping[str, Any], options).items() if value is not None}
        return given if {"fraction", "K", "bytes_per_round"} & set(given) else {**given, "fraction": DEFAULT_FRACTION}

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        given = {name: getattr(self, name) for name in ("fraction", "K", "bytes_per_round")}
        said = [f"{name} = {value}" for name, value in given.items() if value is not None]
        if len(said) > 1:
            raise ValueError(f"{' and '.join(said)} exclude each other: give one")
        return self

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        d = count(shapes)
        K = self.entries(d)
        check_layouts(contribution.arrays, self._layouts(K, d))
        unpack_indices(contribution.arrays, K, d)
        self.values(contribution.arrays, K)

    def size(self, shapes: Shapes) -> ContributionSize:
        d = count(shapes)
        return size_of(self._layouts(self.entries(d), d))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        lengths = list(sizes(shapes).values())
        d = sum(lengths)
        K = self.entries(d)
        tensors = np.searchsorted(np.cumsum(lengths), unpack_indices(contribution.arrays, K, d), side="right")
        squares = np.square(self.values(contribution.arrays, K), dtype=np.float64)
        return Norms.of(np.sqrt(np.bincount(tensors, squares, len(lengths))), lengths)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, sparse=True, participant_vectors=1, aggregation_vectors=2, decodable=True)

    def entries(self, d: int) -> int:
        """Returns K: as given, or as many as fit into the bytes; at most the number of the model's parameters."""
        if self.bytes_per_round is None:
            return min(self.K or max(1, round((self.fraction or DEFAULT_FRACTION) * d)), d)
        fitting = bisect_right(range(1, d + 1), self.bytes_per_round, key=lambda K: size_of(self._layouts(K, d)).arrays)
        if fitting == 0:
            reason = f"the smallest possible is {size_of(self._layouts(1, d)).arrays} for {d} parameters"
            raise FerretError.of_field("spec.invalid", "algorithm.bytes_per_round", self.bytes_per_round, reason)
        return fitting

    def values(self, arrays: Arrays, K: int) -> Array:
        """Returns fp32 (K,): the values in a contribution's arrays; raises like ``coordinates.decode``."""
        sent = {name: arrays[name] for name in layouts(self.coordinates, K, 0, 1)}
        return decode(sent, self.coordinates, [K])[0]

    def _layouts(self, K: int, d: int) -> dict[str, Layout]:
        return {**index_layouts(K, d), **layouts(self.coordinates, K, 0, 1)}
