"""Nobody joins with a key under which one signature holds for every contribution, and nothing is valid under one."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ferret_core.ledger.record import LedgerRecord, Signature, SignatureChecker
from ferret_core.protocol.signatures import Signed, is_valid
from tests.refusals import refused

PRIME = 2**255 - 19
D = -121665 * pow(121666, -1, PRIME) % PRIME
NEUTRAL = (1).to_bytes(32, "little").hex()
"""The encoding of the neutral element. A signature of it and of 32 zeros needs no secret."""
FORGED = NEUTRAL + "00" * 32
SIGNED = Signed("exp_0123456789abcdef", 1, "a", "ba" * 32, "asg_0123456789abcdef", "c0" * 32)

ORDER_8 = (
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
)
Y = (0, 1, PRIME - 1, PRIME, PRIME + 1, *(int.from_bytes(bytes.fromhex(key), "little") for key in ORDER_8))
WEAK = [(y | sign << 255).to_bytes(32, "little").hex() for y in Y for sign in (0, 1)]
"""Every encoding of the eight points of small order, the canonical ones and the others."""


def times_8_is_neutral(y: int) -> bool:
    """Doubles a point with this y three times, as RFC 8032, section 5.1.4 does; the sign of x does not matter."""
    y %= PRIME
    square = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    x = x if x * x % PRIME == square else x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    assert x * x % PRIME == square
    for _ in range(3):
        product = D * x * x * y * y
        x, y = (
            2 * x * y * pow(1 + product, -1, PRIME) % PRIME,
            (y * y + x * x) * pow(1 - product, -1, PRIME) % PRIME,
        )
    return (x, y) == (0, 1)


def test_the_keys_of_this_file_are_all_of_small_order() -> None:
    assert len(set(WEAK)) == 14
    assert all(times_8_is_neutral(y) for y in Y)


@pytest.mark.parametrize("key", WEAK)
def test_nobody_joins_with_a_weak_key(shared_site: Any, key: str) -> None:
    asked = {"code": "c", "display_name": "site-a", "public_key": key}
    answer = shared_site.client().post("/api/v1/participants", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "request.invalid")
    (error,) = answer.json()["errors"]
    assert error["field"] == "public_key"
    assert error["message"].endswith("create a new one")


@pytest.mark.parametrize("key", WEAK)
def test_a_signature_without_a_secret_is_valid_under_no_key(key: str) -> None:
    messages = [SIGNED._replace(round=number) for number in range(1, 17)]
    assert not any(is_valid(key, FORGED, signed) for signed in messages)


def test_the_forgery_is_what_the_library_lets_pass() -> None:
    Ed25519PublicKey.from_public_bytes(bytes.fromhex(NEUTRAL)).verify(bytes.fromhex(FORGED), b"anything")


def test_a_ledger_signed_with_a_weak_key_is_broken() -> None:
    record = LedgerRecord.model_validate(
        {
            "version": 1,
            "experiment": SIGNED.experiment,
            "spec": "5e" * 32,
            "round": 1,
            "base_digest": SIGNED.base_digest,
            "digest": "dd" * 32,
            "update": "0d" * 32,
            "contributions": (("a", SIGNED.contribution),),
            "previous": "",
            "clipped": (),
            "refused": (),
            "signatures": (Signature("a", NEUTRAL, SIGNED.assignment, FORGED),),
            "halvings": 0,
        }
    )
    with refused("ledger.broken", "the signature of a is not valid"):
        SignatureChecker().check(record)
