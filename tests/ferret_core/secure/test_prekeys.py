"""One-time keys against the vectors of the RFCs."""

from __future__ import annotations

import pytest

from ferret_core.secure.prekeys import Prekey, PrekeySecret, agreed_key, derived_key, is_weak, public_half
from tests.ferret_core.secure.groups import sites_of


def test_the_derivation_of_the_rfc() -> None:
    """RFC 5869, test case 1, the first 32 of its 42 bytes."""
    derived = derived_key(b"\x0b" * 22, "000102030405060708090a0b0c", bytes.fromhex("f0f1f2f3f4f5f6f7f8f9"))
    assert derived.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"


def test_the_public_key_of_the_rfc() -> None:
    """RFC 7748, section 5.2: after one iteration from the base point 9, with the scalar 9."""
    assert public_half("09" + "00" * 31) == "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"


def test_two_members_agree_in_their_context_alone() -> None:
    one, other = (PrekeySecret.new() for _ in range(2))
    keys = {
        agreed_key(one.mask, public_half(other.mask), "ab" * 32, b"use"),
        agreed_key(other.mask, public_half(one.mask), "ab" * 32, b"use"),
    }
    assert len(keys) == 1
    assert agreed_key(one.mask, public_half(other.mask), "ab" * 31 + "ac", b"use") not in keys
    assert agreed_key(one.mask, public_half(other.mask), "ab" * 32, b"another") not in keys


@pytest.mark.parametrize(
    "key",
    [
        "00" * 32,
        "01" + "00" * 31,
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    ],
)
def test_the_keys_of_small_order_are_weak(key: str) -> None:
    """Those of https://cr.yp.to/ecdh.html#validate below 2²⁵⁵."""
    assert is_weak(key)
    assert not is_weak(PrekeySecret.new().prekey("simulation", "x", "11" * 32).mask)


def test_a_prekey_has_128_bytes() -> None:
    site = sites_of(1)[0]
    for prekey in site.member.prekeys("simulation", site.identity):
        assert Prekey.decode(prekey.encode()) == prekey
    with pytest.raises(ValueError, match="128"):
        Prekey.decode(prekey.encode()[1:])
