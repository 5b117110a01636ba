"""Masks: pseudo-random vectors, one for each pair of members and one for each member.

A key's ChaCha20 stream (RFC 8439; nonce and counter 0) gives the words of all segments, little-endian. Of the two
members of a pair, the one with the smaller public key adds the mask and the other subtracts it, so they cancel in the
sum. Streams are expanded side by side, a piece at a time: no mask is ever whole in memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from ferret_core.secure.packing import Words
from ferret_core.secure.prekeys import agreed_key, derived_key

PAIR = b"ferret.mask.1"
SELF = b"ferret.self.1"


def pair_key(secret: str, own: str, peer: str, context: str) -> bytes:
    """Returns the key of the mask between two mask keys, from either secret and both public halves."""
    first, second = sorted((own, peer))
    return agreed_key(secret, peer, context, PAIR + bytes.fromhex(first + second))


def self_key(seed: str, context: str) -> bytes:
    """Returns the key of a member's self mask, from its 32-byte seed."""
    return derived_key(bytes.fromhex(seed), context, SELF)


class MaskSum:
    """A sum of masks, each added or subtracted; implements :class:`ferret_core.secure.packing.Mask`.

    Bits above a ring's are random too, and do not count.
    """

    def __init__(self) -> None:
        self._added: list[_Stream] = []
        self._subtracted: list[_Stream] = []

    def add(self, key: bytes) -> None:
        """Adds the mask of a key."""
        self._added.append(_Stream(key))

    def subtract(self, key: bytes) -> None:
        """Subtracts the mask of a key."""
        self._subtracted.append(_Stream(key))

    def add_pairs(self, context: str, secret: str, own: str, peers: Iterable[str]) -> None:
        """Adds the masks that the holder of the mask key ``own`` has with its ``peers``.

        The same call for a dropout removes what its peers' vectors have of the pairs: the two are opposite.
        """
        for peer in peers:
            key = pair_key(secret, own, peer, context)
            (self.add if own < peer else self.subtract)(key)

    def add_to(self, words: Words) -> None:
        for stream in self._added:
            words += stream.next(words)
        for stream in self._subtracted:
            words -= stream.next(words)


class _Stream:
    """The mask of a key, expanded from its first word on."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor()

    def next(self, like: Words) -> Words:
        """Returns as many of the next words as ``like`` has, of the same width."""
        return np.frombuffer(self._cipher.update(bytes(like.nbytes)), like.dtype)
