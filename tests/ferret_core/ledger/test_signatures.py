"""The ledger's signatures, and what shows when somebody meddles with them."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.ledger.record import LedgerRecord, Signature, SignatureChecker
from ferret_core.protocol.signatures import Signed, new_key, public_key, sign
from tests.refusals import refused

EXPERIMENT, ASSIGNMENT, BASE = "exp_0123456789abcdef", "asg_0123456789abcdef", "ba" * 32
KEYS = {name: new_key() for name in ("a", "b")}


def signature(name: str, number: int = 1, secret: str | None = None, digest: str = "c0" * 32) -> Signature:
    secret = secret or KEYS[name]
    signed = Signed(EXPERIMENT, number, name, BASE, ASSIGNMENT, digest)
    return Signature(name, public_key(secret), ASSIGNMENT, sign(secret, signed))


def record(number: int = 1, *signatures: Signature, **changes: Any) -> LedgerRecord:
    members = {
        "version": 1,
        "experiment": EXPERIMENT,
        "spec": "5e" * 32,
        "round": number,
        "base_digest": BASE,
        "digest": "dd" * 32,
        "update": "0d" * 32,
        "contributions": (("a", "c0" * 32), ("b", "c0" * 32)),
        "previous": "",
        "clipped": (),
        "refused": (),
        "signatures": signatures,
        "halvings": 0,
    }
    return LedgerRecord.model_validate({**members, **changes})


def test_signed_and_unsigned_hold_side_by_side() -> None:
    keys = SignatureChecker()
    keys.check(record(1, signature("a")))
    keys.check(record(2, signature("a", 2), signature("b", 2)))
    SignatureChecker().check(record())


def test_a_refused_contribution_is_signed_too() -> None:
    refused = (("b", "c0" * 32, "too long"),)
    SignatureChecker().check(
        record(1, signature("a"), signature("b"), contributions=(("a", "c0" * 32),), refused=refused)
    )


@pytest.mark.parametrize(
    ("tampered", "said"),
    [
        (record(2, signature("a", 1)), "is not valid"),
        (record(2, signature("a", 2, KEYS["b"])), "another key"),
        (record(2, signature("b", 2)), "contribution of a is not signed"),
        (record(2), "contribution of a is not signed"),
        (record(2, signature("a", 2), signature("b", 2, digest="c1" * 32)), "signature of b is not valid"),
    ],
)
def test_what_was_meddled_with_shows(tampered: LedgerRecord, said: str) -> None:
    keys = SignatureChecker()
    keys.check(record(1, signature("a")))
    with refused("ledger.broken", said):
        keys.check(tampered)
