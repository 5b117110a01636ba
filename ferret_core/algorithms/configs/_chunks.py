"""Tensors cut into chunks of at most 64 × 64 entries, of each of which a few are sent.

A matrix is cut where its sides can be divided: into h × w entries, h and w the largest divisors of its sides that 64
is not below. A vector is one row, a tensor of more than two dimensions is the matrix shape[0] × rest. In chunk order
the entries of a chunk stand row by row, a tensor's chunks row by row, and tensors in canonical order.

k entries of a chunk are sent, all of a smaller one. Between whole numbers k means an entry more in some of them: chunk
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

from ferret_core.algorithms.configs._base import BITS, Size, size_of
from ferret_core.models.shapes import Shapes
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_BYTES
from ferret_core.protocol.spec import Strict
from ferret_core.protocol.wire import Array, malformed

SIDE = 64
SHARES = 1024
"""k is counted in this part of an entry."""


class Cut(NamedTuple):
    """How a tensor is cut: its chunks of ``height`` × ``width``, ``down`` and ``across``; the number of its first chunk
    and its first element."""

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
        """How many are sent of the tensor, for ``k`` 1024ths of an entry in a chunk."""
        if k // SHARES >= self.size:
            return self.chunks * self.size
        return (self.chunk + self.chunks) * k // SHARES - self.chunk * k // SHARES


class Chunks:
    """All chunks of a model; arrays have an entry for each chunk, int64: its ``sizes``, its ``starts`` in chunk order,
    and ``counts``, how many of its entries are sent."""

    def __init__(self, cuts: list[Cut], k: int) -> None:
        self.cuts = cuts
        self.k = k

    @cached_property
    def entries(self) -> list[int]:
        """How many are sent of each tensor."""
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
        """int64 (K,): the tensor that each entry which is sent is of."""
        return np.repeat(np.arange(len(self.cuts)), self.entries)


class SparseChunks(Strict):
    """Options of an algorithm that sends some entries of every chunk; of ``density`` and ``bytes_per_round`` one is
    given, or none."""

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
        description="Bytes per participant and round, filled with entries, instead of density",
        json_schema_extra={"excludes": ["density"]},
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Writes the default density out, so that a stored specification says what was run."""
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
        """The arrays that carry as many entries of as many tensors."""

    def size(self, shapes: Shapes) -> Size:
        return size_of(self.layouts(sum(self.chunks(shapes).entries), len(shapes)))

    @property
    def comparable(self) -> bool:
        return False

    def chunks(self, shapes: Shapes) -> Chunks:
        """Raises ``spec.invalid`` for a budget that one entry of every chunk does not fit into."""
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
    """How the tensors are cut, in canonical order."""
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
    """``update`` (d,) in chunk order."""
    parts = [
        update[tensor.elements].reshape(tensor.down, tensor.height, tensor.across, tensor.width) for tensor in cuts
    ]
    return np.concatenate([part.swapaxes(1, 2).reshape(-1) for part in parts])


def from_chunks(ordered: Array, cuts: list[Cut]) -> Array:
    """The update (d,) that is ``ordered`` in chunk order."""
    parts = [
        ordered[tensor.elements].reshape(tensor.down, tensor.across, tensor.height, tensor.width) for tensor in cuts
    ]
    return np.concatenate([part.swapaxes(1, 2).reshape(-1) for part in parts])


def largest_of_each(ordered: Array, chunks: Chunks) -> Array:
    """Ascending places in chunk order, int64 (K,): of every chunk the entries of largest magnitude."""
    return np.concatenate([_largest_of(ordered[tensor.elements], tensor, chunks) for tensor in chunks.cuts])


def _largest_of(values: Array, tensor: Cut, chunks: Chunks) -> Array:
    numbers = slice(tensor.chunk, tensor.chunk + tensor.chunks)
    counts, starts = chunks.counts[numbers], chunks.starts[numbers]
    smallness = -np.abs(values.reshape(tensor.chunks, tensor.size))
    most = int(counts.max())
    best = np.argpartition(smallness, most - 1, axis=1)[:, :most]
    ranks = np.argsort(np.take_along_axis(smallness, best, axis=1), axis=1, kind="stable")
    ranked = np.take_along_axis(best, ranks, axis=1)
    ranked[np.arange(most) >= counts[:, None]] = tensor.size  # beyond the chunk: passed over
    ranked.sort(axis=1)
    return (starts[:, None] + ranked)[ranked < tensor.size]


def position_layout(entries: int) -> Layout:
    """The array that the places of as many entries take: 12 bits each."""
    return Layout(BITS, (-(-entries * 12 // 8),))


def pack_positions(places: Array, chunks: Chunks) -> Array:
    """The array that carries ascending ``places`` in chunk order."""
    within = places - np.repeat(chunks.starts, chunks.counts)
    first, second = np.pad(within, (0, len(within) % 2)).reshape(-1, 2).T
    packed = np.stack([first >> 4, (first & 15) << 4 | second >> 8, second & 255], axis=1).astype(np.uint8)
    return packed.reshape(-1)[: position_layout(len(places)).shape[0]]


def unpack_positions(packed: Array, chunks: Chunks) -> Array:
    """The places in chunk order, int64 (K,), in an array of the right layout.

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
    """The largest divisor of ``length`` that is at most ``SIDE``."""
    return next(side for side in range(min(SIDE, length), 0, -1) if length % side == 0)
