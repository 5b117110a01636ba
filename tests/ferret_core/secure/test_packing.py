"""Packed vectors come back as they were, and their sums are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferret_core.secure.packing import PIECE, Layout, Segment
from tests.refusals import refused


@pytest.mark.parametrize(
    ("members", "most", "bits", "width"),
    [(3, 1, 2, 1), (10, 1, 4, 1), (15, 1, 4, 1), (16, 1, 5, 1), (64, 1, 7, 1), (64, 254, 14, 2), (64, 1 << 22, 29, 4)],
)
def test_a_ring_has_room_for_the_sum_and_no_bit_more(members: int, most: int, bits: int, width: int) -> None:
    (ring,) = Layout([Segment(8, most)], members).rings
    assert (ring.bits, ring.dtype.itemsize, ring.size) == (bits, width, bits)
    assert members * most < 2**bits <= 2 * members * most


def test_bits_are_packed_from_the_lowest_up() -> None:
    layout = Layout([Segment(3, 7), Segment(1, 300)], 1)
    vector = (np.array([0b101, 0b011, 0b110]), np.array([0b1_0000_0001]))
    assert b"".join(layout.pack(vector)) == bytes([0b10_011_101, 0b1, 0b0000_0001, 0b1])


@settings(max_examples=30)
@given(st.data())
def test_sums_of_packed_vectors_are_exact(data: st.DataObject) -> None:
    members = data.draw(st.integers(3, 64))
    segments = data.draw(
        st.lists(st.builds(Segment, st.integers(1, 20), st.integers(1, (2**32 - 1) // 64), st.just(False)), min_size=1)
    )
    layout, draws = Layout(segments, members), np.random.default_rng(data.draw(st.integers(0, 2**32)))
    ranges = [(segment.count, segment.most) for segment in segments]
    vectors = [[draws.integers(0, most + 1, count) for count, most in ranges] for _ in range(members)]
    packed = [b"".join(layout.pack(vector)) for vector in vectors]
    assert {*map(len, packed)} == {layout.size}
    exact = [np.sum(parts, axis=0, dtype=np.int64).tolist() for parts in zip(*vectors, strict=True)]
    assert [words.tolist() for words in layout.sum(packed)] == exact


@pytest.mark.parametrize("most", [1, 5000, 2**30], ids=["2 bits", "14 bits", "32 bits"])
def test_a_long_vector_is_packed_and_summed_in_pieces(most: int) -> None:
    layout, draws = Layout([Segment(2 * PIECE + 11, most), Segment(2, 3)], 3), np.random.default_rng(1)
    vectors = [[draws.integers(0, most + 1, 2 * PIECE + 11), draws.integers(0, 4, 2)] for _ in range(3)]
    pieces = [layout.pack(vector) for vector in vectors]
    assert {len(each) for each in pieces} == {4}
    packed = [b"".join(each) for each in pieces]
    for data in packed:
        layout.check(data)
    for found, parts in zip(layout.sum(packed), zip(*vectors, strict=True), strict=True):
        assert np.array_equal(found, np.sum(parts, axis=0))


def test_bytes_that_nobody_packs_are_refused() -> None:
    layout = Layout([Segment(3, 1), Segment(1, 1)], 3)
    assert layout.size == 2
    for data in (b"", bytes(3), bytes([0b0100_0000, 0]), bytes([0, 0b100])):
        for read in (layout.check, lambda data: layout.sum([data])):
            with refused("contribution.malformed", "masked"):
                read(data)


@pytest.mark.parametrize("most", [0, 2**32])
def test_a_range_without_a_ring_is_refused(most: int) -> None:
    with refused("secure.out_of_range", "most", "32"):
        Layout([Segment(1, most)], 3)


def test_a_segment_that_wraps_sums_modulo_its_ring() -> None:
    """Noise of either sign may leave the ring; a range check would make the sum differ from what is accounted for."""
    layout = Layout([Segment(3, 4095, wraps=True)], 5)
    (ring,) = layout.rings
    assert (ring.bits, ring.limit(5)) == (12, 4095)
    (found,) = layout.sum([b"".join(layout.pack([np.array(e)])) for e in ([4000, 0, 1], [200, 4095, 1])])
    assert found.tolist() == [104, 4095, 2]
    with refused("secure.out_of_range", "4095"):
        layout.pack([np.array([4096, 0, 0])])
