"""One-time keys: a site uploads their public halves ahead, each for one attempt at one round.

Two X25519 keys (RFC 7748): with ``mask`` two members agree on the mask between them, with ``share`` on the key that
encrypts a share. The site's Ed25519 identity signs both. Keys are lower-case hexadecimal.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import Field

from ferret_core.protocol.digest import canonical_json
from ferret_core.protocol.ids import PublicKey, SecretKey, SignatureText
from ferret_core.protocol.signatures import sign
from ferret_core.protocol.spec import StrictModel

PURPOSE = "ferret.secure.prekey.1"
PREKEY_BYTES = 128
_PROBE = X25519PrivateKey.from_private_bytes(bytes(32))


class PrekeyStatement(NamedTuple):
    """A participant's signed statement that these are its one-time keys for the experiment."""

    experiment: str
    participant: str
    mask: str
    share: str

    def message(self) -> bytes:
        return canonical_json({"purpose": PURPOSE, **self._asdict()})


class Prekey(StrictModel):
    """The public halves of a pair of one-time keys, signed."""

    mask: PublicKey
    share: PublicKey
    signature: SignatureText

    def encode(self) -> bytes:
        """Returns mask ‖ share ‖ signature, 128 bytes."""
        return bytes.fromhex(self.mask + self.share + self.signature)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Raises ``ValueError`` for another length."""
        if len(data) != PREKEY_BYTES:
            raise ValueError(f"a prekey has {PREKEY_BYTES} bytes, not {len(data)}")
        return cls(mask=data[:32].hex(), share=data[32:64].hex(), signature=data[64:].hex())


class PrekeySecret(StrictModel):
    """The secret halves, which never leave the site."""

    mask: SecretKey = Field(repr=False)
    share: SecretKey = Field(repr=False)

    @classmethod
    def new(cls) -> Self:
        mask, share = (X25519PrivateKey.generate().private_bytes_raw().hex() for _ in range(2))
        return cls(mask=mask, share=share)

    def prekey(self, experiment: str, participant: str, identity: str) -> Prekey:
        """Returns the public halves, signed with the participant's Ed25519 secret ``identity``."""
        mask, share = public_half(self.mask), public_half(self.share)
        signature = sign(identity, PrekeyStatement(experiment, participant, mask, share))
        return Prekey(mask=mask, share=share, signature=signature)


def public_half(secret: str) -> str:
    """Returns the X25519 public key of a secret one."""
    return _secret(secret).public_key().public_bytes_raw().hex()


def is_weak(public: str) -> bool:
    """True for a key of small order, with which all secrets agree on zeros (RFC 7748, section 6.1)."""
    try:
        _PROBE.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(public)))
    except ValueError:
        return True
    return False


def agreed_key(secret: str, public: str, context: str, info: bytes) -> bytes:
    """Returns the 32-byte key that only the holders of the two secrets can derive, for this context and use."""
    agreed = _secret(secret).exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(public)))
    return derived_key(agreed, context, info)


def derived_key(material: bytes, context: str, info: bytes) -> bytes:
    """Derives 32 bytes: HKDF-SHA256 (RFC 5869) with the context's 32 bytes for salt."""
    return HKDF(SHA256(), 32, bytes.fromhex(context), info).derive(material)


def _secret(secret: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(secret))
