"""Trees against the RFC's own definition, and paths with anything else in their place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.merkle import path, root, root_by

LEAVES = st.lists(st.binary(max_size=40), min_size=1, max_size=40)


def reference_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 9162, section 2.1.1."""
    if not leaves:
        return bytes.fromhex(digest_bytes(b""))
    if len(leaves) == 1:
        return bytes.fromhex(digest_bytes(b"\x00" + leaves[0]))
    k = split(len(leaves))
    return bytes.fromhex(digest_bytes(b"\x01" + reference_root(leaves[:k]) + reference_root(leaves[k:])))


def reference_path(leaves: list[bytes], index: int) -> list[bytes]:
    """PATH of RFC 9162, section 2.1.3.1."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if index < k:
        return [*reference_path(leaves[:k], index), reference_root(leaves[k:])]
    return [*reference_path(leaves[k:], index - k), reference_root(leaves[:k])]


def split(count: int) -> int:
    """The largest power of two smaller than ``count``."""
    k = 1
    while 2 * k < count:
        k *= 2
    return k


def flipped(text: str, bit: int) -> str:
    value = bytearray.fromhex(text)
    value[bit // 8] ^= 1 << bit % 8
    return value.hex()


def test_every_size_is_as_in_the_rfc() -> None:
    for count in range(70):
        leaves = [bytes([number]) for number in range(count)]
        assert root(leaves) == reference_root(leaves).hex()
        for index in range(count):
            assert path(leaves, index) == [node.hex() for node in reference_path(leaves, index)]
            assert root_by(leaves[index], index, count, path(leaves, index)) == root(leaves)


@given(LEAVES, st.data())
def test_each_changed_bit_fails(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    leaf, whole, way = leaves[index], root(leaves), path(leaves, index)
    assert root_by(leaf, index, len(leaves), way) == whole
    if leaf:
        bit = data.draw(st.integers(0, 8 * len(leaf) - 1))
        assert root_by(bytes.fromhex(flipped(leaf.hex(), bit)), index, len(leaves), way) != whole
    if way:
        place, bit = data.draw(st.integers(0, len(way) - 1)), data.draw(st.integers(0, 255))
        changed = [*way[:place], flipped(way[place], bit), *way[place + 1 :]]
        assert root_by(leaf, index, len(leaves), changed) != whole


@given(LEAVES, st.data())
def test_another_leaf_or_place_or_length_of_path_fails(leaves: list[bytes], data: st.DataObject) -> None:
    index, other = (data.draw(st.integers(0, len(leaves) - 1)) for _ in range(2))
    whole, way = root(leaves), path(leaves, index)
    if leaves[index] != leaves[other]:
        assert root_by(leaves[other], index, len(leaves), way) != whole
        assert root_by(leaves[index], other, len(leaves), way) != whole
    assert root_by(leaves[index], index, len(leaves), [*way, whole]) is None
    assert root_by(leaves[index], index, len(leaves), way[:-1]) is None or not way
    assert root_by(leaves[index], len(leaves), len(leaves), way) is None
    assert root_by(leaves[index], -1, len(leaves), way) is None


@given(LEAVES, st.data())
def test_the_root_tells_every_list_from_the_others(leaves: list[bytes], data: st.DataObject) -> None:
    other = data.draw(st.permutations(leaves)) if data.draw(st.booleans()) else leaves[:-1]
    assert (root(other) == root(leaves)) == (other == leaves)


def test_a_node_is_no_leaf() -> None:
    """The two hashes below a node, given as a leaf, do not have its hash."""
    inner = bytes.fromhex("".join(root([leaf]) for leaf in (b"a", b"b")))
    assert root([inner]) != root([b"a", b"b"])
