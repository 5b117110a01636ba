"""PowerSGD's options, and what its participants send: two factors for each matrix, and small tensors whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import accumulate, pairwise, starmap
from typing import NamedTuple

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs._base import Size, check_layouts, size_of
from ferret_core.algorithms.configs._norms import Norms, norm
from ferret_core.models.shapes import Shapes
from ferret_core.projection.coordinates import Layout
from ferret_core.protocol.limits import MAX_WIDTH
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import LocalConfig


class Config(Strict):
    """PowerSGD's options."""

    rank: int = Field(default=4, ge=1, le=MAX_WIDTH, description="Columns r of the two factors that stand for a matrix")
    local: LocalConfig = LocalConfig()

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, self.layouts(shapes))

    def size(self, shapes: Shapes) -> Size:
        return size_of(self.layouts(shapes))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """One for each tensor. P's columns have length 1 and Q starts the next round: neither may grow unseen."""
        arrays, tensors = contribution.arrays, matrices(shapes, self.rank)
        values = [
            max(norm(arrays["P"][tensor.P]) / math.sqrt(tensor.rank), 1) * norm(arrays["Q"][tensor.Q])
            if tensor.rank
            else norm(arrays["whole"][tensor.whole])
            for tensor in tensors
        ]
        return Norms.of(values, [tensor.rows * tensor.columns for tensor in tensors])

    @property
    def comparable(self) -> bool:
        return False

    def layouts(self, shapes: Shapes) -> dict[str, Layout]:
        """The arrays that are sent for parameters of these shapes."""
        tensors = matrices(shapes, self.rank)
        lengths = {
            "P": sum(tensor.rows * tensor.rank for tensor in tensors),
            "Q": sum(tensor.columns * tensor.rank for tensor in tensors),
            "whole": sum(tensor.columns for tensor in tensors if tensor.rank == 0),
        }
        return {name: Layout(np.dtype(np.float32), (length,)) for name, length in lengths.items()}


class Matrix(NamedTuple):
    """A parameter as a matrix, and where it lies in the update and in what is sent; rank 0 and one row if whole."""

    rows: int
    columns: int
    rank: int
    elements: slice
    P: slice
    Q: slice
    whole: slice


def matrices(shapes: Shapes, rank: int) -> list[Matrix]:
    """The parameters in canonical order."""
    formats = [_as_matrix(shape, rank) for shape in shapes.values()]
    places = zip(
        _places(rows * columns for rows, columns, _ in formats),
        _places(rows * r for rows, _, r in formats),
        _places(columns * r for _, columns, r in formats),
        _places(0 if r else columns for _, columns, r in formats),
        strict=True,
    )
    return [Matrix(*format_, *there) for format_, there in zip(formats, places, strict=True)]


def _places(lengths: Iterable[int]) -> Iterator[slice]:
    """Where parts of these lengths lie, one after the other."""
    return starmap(slice, pairwise(accumulate(lengths, initial=0)))


def _as_matrix(shape: tuple[int, ...], rank: int) -> tuple[int, int, int]:
    """(rows, columns, rank)."""
    size = math.prod(shape)
    if len(shape) < 2 or rank * (shape[0] + size // shape[0]) >= size:
        return 1, size, 0
    return shape[0], size // shape[0], rank
