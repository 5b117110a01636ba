"""Signatures of participants: Ed25519 (RFC 8032) over the canonical JSON of a statement, such as :class:`Signed`.

Keys and signatures are lower-case hexadecimal; ``tests/vectors/signatures.json`` has examples.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ferret_core.protocol.digest import canonical_json
from ferret_core.protocol.errors import FerretError

PURPOSE = "ferret.contribution.1"
"""Part of every message, so that a signature is valid for nothing else."""

_PRIME = 2**255 - 19
_SMALL_ORDER = frozenset(
    {
        0,
        1,
        _PRIME - 1,
        0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7,
        0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
    }
)
"""y coordinates of the eight points of an order that divides 8. A signature under such a key can hold for any message.

Chalkias, Garillot, Nikolaenko: "Taming the many EdDSAs" (2020), section 3 and table 1.
"""


class Statement(Protocol):
    """Something to sign: its message holds its purpose, so that a signature is valid for nothing else."""

    def message(self) -> bytes:
        """Returns the signed bytes: JSON with sorted keys, no blanks, UTF-8."""
        ...


class Signed(NamedTuple):
    """A participant's signed statement: the digest ``contribution`` is its contribution to this assignment."""

    experiment: str
    round: int
    participant: str
    base_digest: str
    assignment: str
    contribution: str

    def message(self) -> bytes:
        """Returns the signed bytes: JSON with sorted keys, no blanks, UTF-8."""
        return canonical_json({"purpose": PURPOSE, **self._asdict()})


def new_key() -> str:
    """Creates a secret key of 32 bytes."""
    return Ed25519PrivateKey.generate().private_bytes_raw().hex()


def public_key(secret: str) -> str:
    """Returns the public key of a secret key."""
    return _secret(secret).public_key().public_bytes_raw().hex()


def sign(secret: str, signed: Statement) -> str:
    """Signs a message. The same secret and message give the same 64 bytes."""
    return _secret(secret).sign(signed.message()).hex()


def require_public_key(public: str) -> str:
    """Returns the key; raises ``ValueError`` if its encoding is not canonical (RFC 8032, section 5.1.3) or its order
    small.

    Keys from :func:`new_key` are always accepted.
    """
    y = int.from_bytes(bytes.fromhex(public), "little") & ((1 << 255) - 1)
    if y >= _PRIME or y in _SMALL_ORDER:
        raise ValueError("is a weak Ed25519 key, for which anybody can sign: create a new one")
    return public


def is_valid(public: str, signature: str, signed: Statement) -> bool:
    """True if the holder of the key signed exactly this; always False for a weak key."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(require_public_key(public)))
        key.verify(bytes.fromhex(signature), signed.message())
    except (InvalidSignature, ValueError):
        return False
    return True


def require_valid(public: str, signature: str | None, signed: Signed) -> str:
    """Returns the signature; raises ``signature.invalid`` if it is missing or not valid for this message and key."""
    if signature is None:
        message = f"is missing: {signed.participant} joined with a key, and signs what it sends"
    elif not is_valid(public, signature, signed):
        message = f"is not what the key of {signed.participant} gives for {signed.message().decode()}"
    else:
        return signature
    raise FerretError.of_field("signature.invalid", "Ferret-Signature", signature, message)


def _secret(secret: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(secret))
