"""Merkle trees (RFC 9162, section 2.1) with BLAKE3: one hash commits to a list, and a short path proves a member.

A leaf is hashed with the prefix byte 0 and a node with 1, so that neither can pass for the other. The left half of a
tree holds the largest power of two that is smaller than the number of leaves. Hashes are lower-case hexadecimal.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferret_core.protocol.digest import digest_bytes


def root(leaves: Sequence[bytes]) -> str:
    """Returns the hash of the whole tree; without leaves, the hash of empty input."""
    level = [leaf_hash(leaf) for leaf in leaves]
    while len(level) > 1:
        level = _above(level)
    return level[0] if level else digest_bytes(b"")


def path(leaves: Sequence[bytes], index: int) -> list[str]:
    """Returns the sibling hashes on the path from the leaf at ``index`` to the root, lowest first."""
    level, found = [leaf_hash(leaf) for leaf in leaves], list[str]()
    while len(level) > 1:
        if (sibling := index ^ 1) < len(level):
            found.append(level[sibling])
        level, index = _above(level), index // 2
    return found


def root_by(leaf: bytes, index: int, size: int, path: Sequence[str]) -> str | None:
    """Returns the root of the tree of ``size`` leaves in which ``path`` leads from the leaf at ``index`` to the root.

    None if no such tree has such a path.
    """
    if not 0 <= index < size:
        return None
    node, left = leaf_hash(leaf), list(path)
    while size > 1:
        if index ^ 1 < size:
            if not left:
                return None
            sibling = left.pop(0)
            node = _node(sibling, node) if index % 2 else _node(node, sibling)
        index, size = index // 2, (size + 1) // 2
    return None if left else node


def leaf_hash(leaf: bytes) -> str:
    return digest_bytes(b"\0" + leaf)


def _above(level: Sequence[str]) -> list[str]:
    """Returns the next level: pairs are joined, and an unpaired node moves up unchanged."""
    pairs = zip(level[::2], level[1::2], strict=False)
    return [*(_node(left, right) for left, right in pairs), *level[len(level) // 2 * 2 :]]


def _node(left: str, right: str) -> str:
    return digest_bytes(b"\1" + bytes.fromhex(left + right))
