"""Deals: shares of a member's two secrets, encrypted for each member, with hashes that name the sender of a wrong one.

A pair holds a share of the dealer's self-mask seed and one of its mask secret. The dealer signs a commitment to its
seed and the root of a tree with one leaf per member: the hashes of the two shares, and the encrypted pair. A wrong or
unreadable pair therefore names its dealer, and a share that differs from its hash names the member that released it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Self

from blake3 import blake3
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from ferret_core.protocol import merkle
from ferret_core.protocol.digest import canonical_json, digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.signatures import is_valid, sign
from ferret_core.secure import shamir
from ferret_core.secure.prekeys import PREKEY_BYTES, PrekeySecret, agreed_key
from ferret_core.secure.roster import Roster
from ferret_core.secure.shamir import SHARE_BYTES

PURPOSE = "ferret.secure.deal.1"
SHARE_KEY = b"ferret.share.1"
SHARE_HASH = b"ferret.share.hash.1"
COMMITMENT = b"ferret.seed.1"
DIGEST_BYTES = 32
HASH_BYTES = 16
SIGNATURE_BYTES = 64
PAIR_BYTES = 2 * SHARE_BYTES
ENCRYPTED_BYTES = PAIR_BYTES + 16
Kind = Literal["seed", "mask"]
"""The two secrets of a member: the seed of its self mask, which opens a survivor, and its mask secret, which opens a
dropout. Both together would open its vector."""
KINDS: tuple[Kind, ...] = ("seed", "mask")
NONCE = bytes(12)


class SharePair(NamedTuple):
    """One member's shares of a dealer's two secrets, 33 bytes each."""

    seed: bytes
    mask: bytes


class DealStatement(NamedTuple):
    """A dealer's signed statement in a context: its seed and its shares are these."""

    context: str
    participant: str
    commitment: str
    root: str

    def message(self) -> bytes:
        return canonical_json({"purpose": PURPOSE, **self._asdict()})


class SignedDeal(NamedTuple):
    """The signed part of a deal, without its leaves."""

    commitment: str
    root: str
    signature: str

    def is_valid(self, roster: Roster, dealer: str) -> bool:
        statement = DealStatement(roster.context, dealer, self.commitment, self.root)
        return is_valid(roster.member(dealer).identity, self.signature, statement)


class Deal:
    """A dealer's message: the commitment to its seed, one leaf per member, its signature."""

    def __init__(self, commitment: str, leaves: Sequence[bytes], signature: str) -> None:
        self.commitment, self.leaves, self.signature = commitment, tuple(leaves), signature

    @property
    def signed(self) -> SignedDeal:
        return SignedDeal(self.commitment, merkle.root(self.leaves), self.signature)

    def encode(self) -> bytes:
        """Returns commitment ‖ hashes of all members ‖ encrypted pairs of all but the dealer ‖ signature."""
        hashes, pairs = zip(*((leaf[:DIGEST_BYTES], leaf[DIGEST_BYTES:]) for leaf in self.leaves), strict=True)
        return b"".join([bytes.fromhex(self.commitment), *hashes, *pairs, bytes.fromhex(self.signature)])

    @classmethod
    def decode(cls, data: bytes, roster: Roster, dealer: str) -> Self:
        """Raises ``secure.shares_invalid``, naming the dealer, for another length or an invalid signature."""
        members, own = len(roster.members), roster.place(dealer)
        if len(data) != (size := deal_size(members)):
            raise wrong_shares(dealer, f"sent a deal of {len(data)} bytes; in this group one has {size}")
        reader = Reader(data)
        commitment = reader.take(DIGEST_BYTES).hex()
        hashes = [reader.take(DIGEST_BYTES) for _ in range(members)]
        pairs = [b"" if place == own else reader.take(ENCRYPTED_BYTES) for place in range(members)]
        leaves = [both + pair for both, pair in zip(hashes, pairs, strict=True)]
        deal = cls(commitment, leaves, reader.take(SIGNATURE_BYTES).hex())
        if not deal.signed.is_valid(roster, dealer):
            raise wrong_shares(dealer, "did not sign its deal for this roster")
        return deal

    def part(self, place: int) -> bytes:
        """Returns what the member at ``place`` needs: commitment ‖ its leaf ‖ path ‖ signature."""
        path = b"".join(map(bytes.fromhex, merkle.path(self.leaves, place)))
        return bytes.fromhex(self.commitment) + self.leaves[place] + path + bytes.fromhex(self.signature)

    def check(self, roster: Roster, dealer: str, holder: str, kind: Kind, share: bytes) -> None:
        """Raises ``secure.shares_invalid``, naming the ``holder``, for a share other than the dealer's."""
        leaf = self.leaves[roster.place(holder)]
        if share_hash(roster, dealer, holder, kind, share) != _hash_in(leaf, kind):
            raise wrong_shares(holder, f"released a share of the {kind} secret of {dealer} that is not the one dealt")


def deal_size(members: int) -> int:
    """Returns the bytes of a deal: 114 for each member, 14 besides."""
    return DIGEST_BYTES + DIGEST_BYTES * members + ENCRYPTED_BYTES * (members - 1) + SIGNATURE_BYTES


def message_bytes(members: int) -> int:
    """Returns the bytes that a member sends in addition to its vector: one-time keys, deal, signature, shares."""
    return PREKEY_BYTES + deal_size(members) + SIGNATURE_BYTES + SHARE_BYTES * members


def part_size(members: int, place: int) -> int:
    """Returns the bytes of a deal's part for the member at ``place``."""
    return 2 * DIGEST_BYTES + ENCRYPTED_BYTES + DIGEST_BYTES * path_length(members, place) + SIGNATURE_BYTES


def path_length(size: int, index: int) -> int:
    """Returns the hashes on a path in a tree of ``size`` leaves."""
    length = 0
    while size > 1:
        length += (index ^ 1) < size
        index, size = index // 2, (size + 1) // 2
    return length


def make_deal(
    roster: Roster,
    dealer: str,
    keys: PrekeySecret,
    seed: str,
    identity: str,
    draw: Callable[[int], int] = secrets.randbelow,
) -> tuple[Deal, SharePair]:
    """Deals shares of the ``seed`` and of ``keys.mask``; returns the deal and the dealer's own pair."""
    members = len(roster.members)
    split = [shamir.split(bytes.fromhex(secret), roster.threshold, members, draw) for secret in (seed, keys.mask)]
    pairs = [SharePair(*both) for both in zip(*split, strict=True)]
    leaves = list[bytes]()
    for member, pair in zip(roster.members, pairs, strict=True):
        hashes = (share_hash(roster, dealer, member.name, kind, getattr(pair, kind)) for kind in KINDS)
        encrypted = b"" if member.name == dealer else _encrypt(roster, dealer, member.name, keys.share, pair)
        leaves.append(b"".join([*hashes, encrypted]))
    commitment = commitment_to(seed, roster.context)
    statement = DealStatement(roster.context, dealer, commitment, merkle.root(leaves))
    return Deal(commitment, leaves, sign(identity, statement)), pairs[roster.place(dealer)]


def open_part(part: bytes, roster: Roster, dealer: str, holder: str, keys: PrekeySecret) -> SharePair:
    """Returns the holder's shares from its part of the dealer's deal.

    Raises ``secure.shares_invalid``, naming the dealer: the signature is not for the holder's own context, the pair
    cannot be decrypted, or it differs from the signed hashes.
    """
    place, reader = roster.place(holder), Reader(part)
    commitment = reader.take(DIGEST_BYTES).hex()
    leaf = reader.take(DIGEST_BYTES + ENCRYPTED_BYTES)
    path = [reader.take(DIGEST_BYTES).hex() for _ in range(path_length(len(roster.members), place))]
    root = merkle.root_by(leaf, place, len(roster.members), path)
    signature = reader.take(SIGNATURE_BYTES).hex()
    if root is None or not SignedDeal(commitment, root, signature).is_valid(roster, dealer):
        raise wrong_shares(dealer, "did not sign these shares for this site's roster, model and specification")
    pair = _decrypt(roster, dealer, holder, keys.share, leaf[DIGEST_BYTES:])
    for kind in KINDS:
        if pair is None or share_hash(roster, dealer, holder, kind, getattr(pair, kind)) != _hash_in(leaf, kind):
            raise wrong_shares(dealer, f"signed shares for {holder} that do not match their hashes")
    assert pair is not None
    return pair


def commitment_to(seed: str, context: str) -> str:
    """Returns the hash that binds a dealer to its self-mask seed."""
    return digest_bytes(COMMITMENT + bytes.fromhex(context + seed))


def share_hash(roster: Roster, dealer: str, holder: str, kind: Kind, share: bytes) -> bytes:
    """Returns 16 bytes of BLAKE3 over label, context, places, kind and share. A share has 256 random bits: the hash
    reveals nothing about it."""
    places = bytes([roster.place(dealer), roster.place(holder), KINDS.index(kind)])
    return blake3(SHARE_HASH + bytes.fromhex(roster.context) + places + share).digest(HASH_BYTES)


def wrong_shares(participant: str, message: str) -> FerretError:
    return FerretError.of_field("secure.shares_invalid", "participant", participant, message)


class Reader:
    """Reads octets from the front; the length is checked beforehand."""

    def __init__(self, data: bytes) -> None:
        self._data, self._offset = data, 0

    def take(self, count: int) -> bytes:
        self._offset += count
        return self._data[self._offset - count : self._offset]


def _hash_in(leaf: bytes, kind: Kind) -> bytes:
    begin = HASH_BYTES * KINDS.index(kind)
    return leaf[begin : begin + HASH_BYTES]


def _cipher(roster: Roster, dealer: str, holder: str, secret: str, peer: str) -> tuple[ChaCha20Poly1305, bytes]:
    """Returns the cipher of the one message from dealer to holder, and its associated data."""
    keys = bytes.fromhex(roster.member(dealer).share + roster.member(holder).share)
    key = agreed_key(secret, peer, roster.context, SHARE_KEY + keys)
    places = bytes([roster.place(dealer), roster.place(holder)])
    return ChaCha20Poly1305(key), bytes.fromhex(roster.context) + places


def _encrypt(roster: Roster, dealer: str, holder: str, secret: str, pair: SharePair) -> bytes:
    cipher, bound = _cipher(roster, dealer, holder, secret, roster.member(holder).share)
    return cipher.encrypt(NONCE, b"".join(pair), bound)


def _decrypt(roster: Roster, dealer: str, holder: str, secret: str, encrypted: bytes) -> SharePair | None:
    cipher, bound = _cipher(roster, dealer, holder, secret, roster.member(dealer).share)
    try:
        both = cipher.decrypt(NONCE, encrypted, bound)
    except InvalidTag:
        return None
    return SharePair(both[:SHARE_BYTES], both[SHARE_BYTES:])
