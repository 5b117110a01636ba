"""Tensors cut into chunks of at most 64 × 64 entries; a few entries of each chunk are sent.

A matrix is cut into chunks of h × w entries, where h and w are the largest divisors of its sides up to 64. A vector is
one row, a tensor of more than two dimensions is the matrix shape[0] × rest. In chunk order the entries of a chunk are
in row-major order, so are a tensor's chunks, and tensors are in canonical order.

k entries of a chunk are sent, or all of a smaller one. A fractional k means an additional entry in some chunks: chunk
number c sends ⌊(c + 1) k⌋ − ⌊c k⌋. Their places within the chunk travel in 12 bits each, ascending, chunk after chunk.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from pydantic import Field, model_validator

from ferret_core.algorithms.configs.base import BITS, ContributionSize, size_of
from ferret_core.models.shapes import Shapes
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_BYTES
from ferret_core.protocol.spec import StrictModel
from ferret_core.protocol.wire import Array, malformed

SIDE = 64
SHARES = 1024
"""k is counted in 1024ths of an entry."""


class Cut(NamedTuple):
    """The cut of a tensor into ``down`` × ``across`` chunks of ``height`` × ``width``.

    ``chunk`` and ``element`` are the numbers of its first chunk and first element.
    """

    down: int
    across: int
    height: int
    width: int
    chunk: int
    element: int

    @property
    def chunks(self) -> int:
        return self.down * self.across

    @property
    def size(self) -> int:
        return self.height * self.width

    @property
    def elements(self) -> slice:
        return slice(self.element, self.element + self.chunks * self.size)

    def entries(self, k: int) -> int:
        """Returns the number of sent entries of the tensor, for ``k`` 1024ths of an entry per chunk."""
        if k // SHARES >= self.size:
            return self.chunks * self.size
        return (self.chunk + self.chunks) * k // SHARES - self.chunk * k // SHARES


class Chunks:
    """All chunks of a model. Its arrays, int64, have one entry per chunk: ``sizes``, ``starts`` in chunk order, and
    ``counts``, the numbers of sent entries."""

    def __init__(self, cuts: list[Cut], k: int) -> None:
        self.cuts = cuts
        self.k = k

    @cached_property
    def entries(self) -> list[int]:
        """Number of sent entries of each tensor."""
        return [cut.entries(self.k) for cut in self.cuts]

    @cached_property
    def sizes(self) -> Array:
        return np.concatenate([np.full(cut.chunks, cut.size) for cut in self.cuts])

    @cached_property
    def starts(self) -> Array:
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def counts(self) -> Array:
        return np.minimum(np.diff(np.arange(len(self.sizes) + 1) * self.k // SHARES), self.sizes)

    @cached_property
    def tensors(self) -> Array:
        """int64 (K,): the tensor of each sent entry."""
        return np.repeat(np.arange(len(self.cuts)), self.entries)


class SparseChunks(StrictModel):
    """Options for sending some entries of every chunk: at most one of ``density`` and ``bytes_per_round`` is given."""

    default_density: ClassVar[float]

    density: float | None = Field(
        default=None,
        ge=1 / SIDE**2,
        le=1,
        description="k as a share of a chunk of 4096 entries",
        json_schema_extra={"excludes": ["bytes_per_round"]},
    )
    bytes_per_round: int | None = Field(
        default=None,
        ge=1,
        le=MAX_BYTES,
        description="Bytes per participant and round, filled with entries; replaces density",
        json_schema_extra={"excludes": ["density"]},
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Fills in the default density, so that a stored specification is explicit."""
        if not isinstance(options, Mapping):
            return options
        given = {name: value for name, value in cast(Mapping[str, Any], options).items() if value is not None}
        return given if {"density", "bytes_per_round"} & set(given) else {**given, "density": cls.default_density}

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if self.density is not None and self.bytes_per_round is not None:
            both = f"density = {self.density} and bytes_per_round = {self.bytes_per_round}"
            raise ValueError(f"{both} exclude each other: give one")
        return self

    @abstractmethod
    def layouts(self, entries: int, tensors: int) -> dict[str, Layout]:
        """Returns the layouts of the arrays that carry ``entries`` entries of ``tensors`` tensors."""

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(self.layouts(sum(self.chunks(shapes).entries), len(shapes)))

    @property
    def comparable(self) -> bool:
        return False

    def chunks(self, shapes: Shapes) -> Chunks:
        """Returns the chunks; raises ``spec.invalid`` for a budget too small for one entry of every chunk."""
        cuts = cut(shapes)
        if self.bytes_per_round is None:
            return Chunks(cuts, round((self.density or self.default_density) * SIDE**2 * SHARES))

        def bytes_for(k: int) -> int:
            return size_of(self.layouts(sum(tensor.entries(k) for tensor in cuts), len(cuts))).arrays

        options = range(SHARES, SIDE**2 * SHARES + 1)
        fitting = bisect_right(options, self.bytes_per_round, key=bytes_for)
        if fitting == 0:
            reason = f"the smallest possible is {bytes_for(SHARES)}, with one entry of every chunk"
            raise FerretError.of_field("spec.invalid", "algorithm.bytes_per_round", self.bytes_per_round, reason)
        return Chunks(cuts, options[fitting - 1])


def cut(shapes: Shapes) -> list[Cut]:
    """Returns the cuts of the tensors, in canonical order."""
    cuts: list[Cut] = []
    chunk = element = 0
    for shape in shapes.values():
        rows = shape[0] if len(shape) > 1 else 1
        columns = math.prod(shape) // rows
        height, width = _side(rows), _side(columns)
        cuts.append(Cut(rows // height, columns // width, height, width, chunk, element))
        chunk += cuts[-1].chunks
        element += rows * columns
    return cuts


def in_chunks(update: Array, cuts: list[Cut]) -> Array:
    """Returns ``update`` (d,) in chunk order."""
    parts = [
        update[tensor.elements].reshape(tensor.down, tensor.height, tensor.across, tensor.width) for tensor in cuts
    ]
    return np.concatenate([part.swapaxes(1, 2).reshape(-1) for part in parts])


def from_chunks(ordered: Array, cuts: list[Cut]) -> Array:
    """Returns the update (d,) from ``ordered``, which is in chunk order."""
    parts = [
        ordered[tensor.elements].reshape(tensor.down, tensor.across, tensor.height, tensor.width) for tensor in cuts
    ]
    return np.concatenate([part.swapaxes(1, 2).reshape(-1) for part in parts])


def largest_of_each(ordered: Array, chunks: Chunks) -> Array:
    """Returns ascending places in chunk order, int64 (K,), of the largest magnitudes of every chunk."""
    return np.concatenate([_largest_of(ordered[tensor.elements], tensor, chunks) for tensor in chunks.cuts])


def _largest_of(values: Array, tensor: Cut, chunks: Chunks) -> Array:
    numbers = slice(tensor.chunk, tensor.chunk + tensor.chunks)
    counts, starts = chunks.counts[numbers], chunks.starts[numbers]
    smallness = -np.abs(values.reshape(tensor.chunks, tensor.size))
    most = int(counts.max())
    best = np.argpartition(smallness, most - 1, axis=1)[:, :most]
    ranks = np.argsort(np.take_along_axis(smallness, best, axis=1), axis=1, kind="stable")
    ranked = np.take_along_axis(best, ranks, axis=1)
    ranked[np.arange(most) >= counts[:, None]] = tensor.size  # beyond the chunk: skipped
    ranked.sort(axis=1)
    return (starts[:, None] + ranked)[ranked < tensor.size]


def position_layout(entries: int) -> Layout:
    """Returns the layout of the places of ``entries`` entries: 12 bits each."""
    return Layout(BITS, (-(-entries * 12 // 8),))


def pack_positions(places: Array, chunks: Chunks) -> Array:
    """Packs ascending ``places`` in chunk order."""
    within = places - np.repeat(chunks.starts, chunks.counts)
    first, second = np.pad(within, (0, len(within) % 2)).reshape(-1, 2).T
    packed = np.stack([first >> 4, (first & 15) << 4 | second >> 8, second & 255], axis=1).astype(np.uint8)
    return packed.reshape(-1)[: position_layout(len(places)).shape[0]]


def unpack_positions(packed: Array, chunks: Chunks) -> Array:
    """Returns the places in chunk order, int64 (K,), from an array of the right layout.

    Raises ``contribution.malformed`` for an array that ``pack_positions`` would not have made.
    """
    count = sum(chunks.entries)
    high, middle, low = np.pad(packed, (0, -len(packed) % 3)).reshape(-1, 3).astype(np.int64).T
    within = np.stack([high << 4 | middle >> 4, (middle & 15) << 8 | low], axis=1).reshape(-1)
    if within[count:].any():
        raise malformed("positions", None, f"bits after the first {count} places are not zero")
    beyond = within[:count] >= np.repeat(chunks.sizes, chunks.counts)
    if beyond.any():
        raise malformed("positions", int(within[:count][beyond][0]), "is a place beyond its chunk")
    places = within[:count] + np.repeat(chunks.starts, chunks.counts)
    if bool((np.diff(places) <= 0).any()):
        raise malformed("positions", None, "the places within a chunk do not ascend")
    return places


def _side(length: int) -> int:
    """Returns the largest divisor of ``length`` that is at most ``SIDE``."""
    return next(side for side in range(min(SIDE, length), 0, -1) if length % side == 0)
