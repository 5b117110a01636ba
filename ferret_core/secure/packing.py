"""Vectors of unsigned integers in rings that their sum over a group cannot exceed, packed bit by bit.

A vector has segments. Each entry of a segment is at most ``most``, so a sum over n members is at most n · most, which
fits b = ⌈log₂(n · most + 1)⌉ bits: sums modulo 2ᵇ are exact. Arithmetic is in the narrowest of 8, 16 and 32-bit words.
A segment that wraps has entries modulo 2ᵇ of integers of either sign: its sum is modulo 2ᵇ too.

In bytes, entry k of a segment has bits kb … kb + b − 1, the lowest first, from the lowest bit of the first byte on;
zeros fill the segment's last byte. A vector may be as long as a model, so it is packed, masked and summed in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ferret_core.protocol.buffers import Pieces, release
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_ELEMENTS
from ferret_core.protocol.wire import malformed

Words = NDArray[np.unsignedinteger[Any]]
Vector = tuple[Words, ...]
"""One array of words for each segment."""
MOST_BITS = 32
MOST_WORDS = 1 << 36
"""Words of a vector: a ChaCha20 stream has 2³² blocks of 64 bytes, and a word up to 4 bytes."""
PIECE = 1 << 18
"""Entries of a piece, a multiple of 8: pieces of packed bits begin with a byte."""


class Segment(NamedTuple):
    """``count`` entries, each at most ``most`` in one member's vector; in a segment that ``wraps``, ``most`` is
    2ᵇ − 1, and sums are modulo 2ᵇ."""

    count: Annotated[int, Field(ge=1, le=MAX_ELEMENTS)]
    most: Annotated[int, Field(ge=1, lt=1 << MOST_BITS)]
    wraps: bool = False


class Entries(Protocol):
    """The integers of a segment: an array (count,), or what computes each slice of it on request."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, place: slice, /) -> NDArray[Any]: ...


class Mask(Protocol):
    """A random vector that is expanded in pieces, from the first entry to the last."""

    def add_to(self, words: Words) -> None:
        """Adds the next piece in place, modulo the width of the words."""
        ...


class Ring:
    """A segment's entries in a group of ``members``: integers modulo 2^``bits``, in words of ``dtype``."""

    def __init__(self, segment: Segment, members: int) -> None:
        self.count, self.most, self.wraps = segment
        self.bits = (self.most if self.wraps else members * self.most).bit_length()
        if not 0 < self.bits <= MOST_BITS:
            message = f"a sum over {members} members needs {self.bits} bits: from 1 to {MOST_BITS} are possible"
            raise FerretError.of_field("secure.out_of_range", "most", self.most, message)
        self.dtype = np.dtype(f"<u{next(width for width in (1, 2, 4) if 8 * width >= self.bits)}")
        self.size = self._bytes(self.count)

    @property
    def ones(self) -> int:
        """2^bits − 1."""
        return (1 << self.bits) - 1

    def limit(self, members: int) -> int:
        """Returns the largest entry of a sum of ``members`` vectors."""
        return self.ones if self.wraps else members * self.most

    def pack(self, words: Words) -> bytes:
        """Packs words (n,) without their bits above the ring's."""
        octets = words.view(np.uint8).reshape(len(words), self.dtype.itemsize)
        if self._whole:
            return octets.tobytes()
        bits = np.unpackbits(octets, axis=1, count=self.bits, bitorder="little")
        return np.packbits(bits, axis=None, bitorder="little").tobytes()

    def unpack(self, data: memoryview, count: int) -> Words:
        """Unpacks ``count`` words; raises ``contribution.malformed`` for bits after the last of them."""
        if self._whole:
            return np.frombuffer(data, self.dtype)
        bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
        entries, rest = np.split(bits, [count * self.bits])
        if rest.any():
            raise malformed("masked", None, "bits after the last entry of a segment are not zero")
        octets = np.zeros((count, self.dtype.itemsize), np.uint8)
        packed = np.packbits(entries.reshape(count, self.bits), axis=1, bitorder="little")
        octets[:, : packed.shape[1]] = packed
        return octets.view(self.dtype).reshape(count)

    def place(self, begin: int, count: int) -> slice:
        """Returns the bytes of ``count`` entries from ``begin``, a multiple of 8, on."""
        start = self._bytes(begin)
        return slice(start, start + self._bytes(count))

    @property
    def _whole(self) -> bool:
        return self.bits == 8 * self.dtype.itemsize

    def _bytes(self, count: int) -> int:
        return -(-count * self.bits // 8)


class Piece(NamedTuple):
    """Entries of one segment: ``count`` of them from ``begin`` on, with ``data``, their place in a packed vector."""

    segment: int
    ring: Ring
    begin: int
    count: int
    data: slice

    @property
    def entries(self) -> slice:
        return slice(self.begin, self.begin + self.count)

    def require(self, integers: NDArray[Any], members: int) -> Words:
        """Returns a copy as words; raises ``secure.out_of_range`` for a type other than integers, and for an entry
        below 0 or above what a sum of ``members`` vectors can have."""
        if integers.dtype.kind not in "biu":
            field, message = f"segment {self.segment}.dtype", "is not a type of integers"
            raise FerretError.of_field("secure.out_of_range", field, str(integers.dtype), message)
        limit = self.ring.limit(members)
        if int(integers.min()) < 0 or int(integers.max()) > limit:
            wrong = int(integers[(integers < 0) | (integers > limit)][0])
            message = f"is outside 0 … {limit}, the range of {members} members"
            raise FerretError.of_field("secure.out_of_range", f"segment {self.segment}", wrong, message)
        return integers.astype(self.ring.dtype)


class Layout:
    """The segments of the vectors of a group of ``members``."""

    def __init__(self, segments: Sequence[Segment], members: int) -> None:
        self.rings = [Ring(segment, members) for segment in segments]

    @cached_property
    def size(self) -> int:
        """Bytes of a packed vector."""
        return sum(ring.size for ring in self.rings)

    def pieces(self) -> Iterator[Piece]:
        """Yields the pieces of a vector, segment after segment."""
        offset = 0
        for segment, ring in enumerate(self.rings):
            for begin in range(0, ring.count, PIECE):
                count = min(PIECE, ring.count - begin)
                place = ring.place(begin, count)
                yield Piece(segment, ring, begin, count, slice(offset + place.start, offset + place.stop))
            offset += ring.size

    def pack(self, vector: Sequence[Entries], mask: Mask | None = None) -> Pieces:
        """Packs a member's vector plus a ``mask`` into ``size`` bytes; :meth:`Piece.require` lists what it refuses."""
        shapes, expected = [each.shape for each in vector], [(ring.count,) for ring in self.rings]
        if shapes != expected:
            raise FerretError.of_field("secure.out_of_range", "vector.shape", str(shapes), f"expected {expected}")

        def packed(piece: Piece) -> bytes:
            words = piece.require(vector[piece.segment][piece.entries], 1)
            if mask is not None:
                mask.add_to(words)
            return piece.ring.pack(words)

        return tuple(map(packed, self.pieces()))

    def sum(self, packed: Sequence[bytes | memoryview], mask: Mask | None = None) -> Vector:
        """Returns the sum of packed vectors plus a ``mask``.

        Raises ``contribution.malformed`` for bytes that :meth:`pack` would not have made, and ``secure.out_of_range``
        for a sum that as many members cannot have.
        """
        for data in packed:
            self._require_size(data)
        total = tuple(np.empty(ring.count, ring.dtype) for ring in self.rings)
        for piece in self.pieces():
            words = np.zeros(piece.count, piece.ring.dtype)
            for data in packed:
                words += piece.ring.unpack(memoryview(data)[piece.data], piece.count)
                release(data)
            if mask is not None:
                mask.add_to(words)
            words &= piece.ring.dtype.type(piece.ring.ones)
            total[piece.segment][piece.entries] = piece.require(words, len(packed))
        return total

    def check(self, data: bytes | memoryview) -> None:
        """Raises ``contribution.malformed`` for bytes that :meth:`pack` would not have made."""
        self._require_size(data)
        for piece in self.pieces():
            if piece.begin + piece.count == piece.ring.count:
                piece.ring.unpack(memoryview(data)[piece.data], piece.count)

    def _require_size(self, data: bytes | memoryview) -> None:
        if len(data) != self.size:
            raise malformed("masked", len(data), f"a masked vector of this group has {self.size} bytes")
