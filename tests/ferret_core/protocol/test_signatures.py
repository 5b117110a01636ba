"""Signatures against the RFC's vector, ours, and whatever else somebody may put in their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ferret_core.protocol.signatures import Signed, is_valid, new_key, public_key, require_valid, sign
from tests.refusals import refused

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "signatures.json").read_text(encoding="utf-8"))
SIGNED = Signed("exp_0123456789abcdef", 3, "clinic", "ab" * 32, "asg_0123456789abcdef", "cd" * 32)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_published_vectors(vector: dict[str, Any]) -> None:
    signed = Signed(**vector["context"])
    assert signed.message().decode() == vector["message"]
    assert public_key(vector["secret_key"]) == vector["public_key"]
    assert sign(vector["secret_key"], signed) == vector["signature"]
    assert is_valid(vector["public_key"], vector["signature"], signed)


def test_the_keys_of_the_rfc() -> None:
    """RFC 8032, section 7.1, test 2."""
    secret = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
    assert public_key(secret) == "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"


@pytest.mark.parametrize("field", Signed._fields)
def test_another_context_does_not_hold(field: str) -> None:
    secret = new_key()
    signature = sign(secret, SIGNED)
    other = SIGNED._replace(**{field: 4 if field == "round" else getattr(SIGNED, field)[:-1] + "e"})
    assert is_valid(public_key(secret), signature, SIGNED)
    assert not is_valid(public_key(secret), signature, other)


def test_what_is_missing_or_anothers_is_refused() -> None:
    secret = new_key()
    key = public_key(secret)
    assert require_valid(key, sign(secret, SIGNED), SIGNED) == sign(secret, SIGNED)
    for signature in (None, sign(new_key(), SIGNED), "00" * 64, "ff" * 64, "zz"):
        with refused("signature.invalid"):
            require_valid(key, signature, SIGNED)
    assert not is_valid("00" * 31, sign(secret, SIGNED), SIGNED)
