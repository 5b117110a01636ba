"""PowerSGD's options and contributions: one factor of each matrix, and small tensors whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, pairwise, starmap
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs.base import ContributionSize, check_layouts, size_of
from ferret_core.algorithms.configs.norms import Norms, norm
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.limits import MAX_WIDTH
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import LOCAL, LocalConfig

Side = Literal["P", "Q"]
"""A factor of a matrix: P has one row for each of its rows, Q one for each of its columns."""
OTHER: Mapping[Side, Side] = {"P": "Q", "Q": "P"}


def sent_in(round_number: int) -> Side:
    """Returns the side that participants send in a round; they share the other one."""
    return "P" if round_number % 2 else "Q"


class Config(StrictModel):
    """PowerSGD's options."""

    rank: int = Field(
        default=4, ge=1, le=MAX_WIDTH, description="Columns r of the two factors that approximate a matrix"
    )
    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, self.layouts(shapes, sent_in(task.round)))

    def size(self, shapes: Shapes) -> ContributionSize:
        """Returns the size of the longer side."""
        return max(size_of(self.layouts(shapes, side)) for side in OTHER)

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns a norm per tensor: the sent factor's, because the shared factor's columns are orthonormal."""
        arrays, tensors = contribution.arrays, matrices(shapes, self.rank)
        side = sent_in(contribution.meta.round)
        values = [
            norm(arrays[side][tensor.factors[side]] if tensor.rank else arrays["whole"][tensor.whole])
            for tensor in tensors
        ]
        return Norms.of(values, [tensor.rows * tensor.columns for tensor in tensors])

    @property
    def traits(self) -> Traits:
        return Traits(
            first_order=self.local,
            comparable=True,
            directions=self._directions,
            participant_vectors=1,
            aggregation_vectors=2,
            decodable=True,
        )

    def _directions(self, shapes: Shapes) -> int:
        """Returns the numbers of the shorter side."""
        return min(sum(length for _, (length,) in self.layouts(shapes, side).values()) for side in OTHER)

    def layouts(self, shapes: Shapes, side: Side) -> dict[str, Layout]:
        """Returns the layouts of ``side`` for parameters of these shapes."""
        tensors = matrices(shapes, self.rank)
        lengths = {side: tensors[-1].factors[side].stop, "whole": tensors[-1].whole.stop}
        return {name: Layout(np.dtype(np.float32), (length,)) for name, length in lengths.items()}


class Matrix(NamedTuple):
    """A parameter as a matrix, with its place in the update and the sent arrays; rank 0 and one row if sent whole."""

    rows: int
    columns: int
    rank: int
    elements: slice
    factors: Mapping[Side, slice]
    whole: slice


def matrices(shapes: Shapes, rank: int) -> list[Matrix]:
    """Returns the parameters in canonical order."""
    formats = [_as_matrix(shape, rank) for shape in shapes.values()]
    places = zip(
        _places(rows * columns for rows, columns, _ in formats),
        _places(rows * r for rows, _, r in formats),
        _places(columns * r for _, columns, r in formats),
        _places(0 if r else columns for _, columns, r in formats),
        strict=True,
    )
    return [
        Matrix(*format_, elements, {"P": left, "Q": right}, whole)
        for format_, (elements, left, right, whole) in zip(formats, places, strict=True)
    ]


def _places(lengths: Iterable[int]) -> Iterator[slice]:
    """Yields consecutive slices of these lengths."""
    return starmap(slice, pairwise(accumulate(lengths, initial=0)))


def _as_matrix(shape: tuple[int, ...], rank: int) -> tuple[int, int, int]:
    """Returns (rows, columns, rank)."""
    size = math.prod(shape)
    if len(shape) < 2 or rank * (shape[0] + size // shape[0]) >= size:
        return 1, size, 0
    return shape[0], size // shape[0], rank
