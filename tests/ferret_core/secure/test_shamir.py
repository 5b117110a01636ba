"""Any t shares give the secret; other numbers, and fewer, do not."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from ferret_core.secure.shamir import PRIME, combine, split, weights

SECRETS = st.binary(min_size=32, max_size=32)


@settings(max_examples=30)
@given(SECRETS, st.integers(1, 43), st.integers(0, 21), st.randoms())
def test_any_threshold_of_shares_gives_the_secret(secret: bytes, threshold: int, spare: int, draws) -> None:
    shares = split(secret, threshold, threshold + spare)
    places = draws.sample(range(threshold + spare), threshold)
    assert combine(weights([place + 1 for place in places]), [shares[place] for place in places]) == secret


def test_fewer_shares_are_of_any_secret() -> None:
    """Two of three shares fit every secret: with a third at the right height they give it."""
    shares = split(bytes(32), 3, 4)
    for secret in (bytes(31) + b"\x80", b"\xff" * 32):
        factors = weights([1, 2, 3])
        known = sum(
            factor * int.from_bytes(share, "little") for factor, share in zip(factors, shares[:2], strict=False)
        )
        third = (int.from_bytes(secret, "little") - known) * pow(factors[2], -1, PRIME) % PRIME
        assert combine(factors, [*shares[:2], third.to_bytes(33, "little")]) == secret


def test_the_coefficients_are_those_drawn() -> None:
    """f(x) = 7 + 2x + 3x², modulo p."""
    drawn = iter([2, 3])
    shares = split((7).to_bytes(32, "little"), 3, 3, lambda below: next(drawn) if below == PRIME else 0)
    assert [int.from_bytes(share, "little") for share in shares] == [12, 23, 40]


def test_the_largest_secret_and_shares_beyond_256_bits_are_whole() -> None:
    secret = b"\xff" * 32
    shares = split(secret, 2, 3, lambda below: below - 1)
    for some in combinations(range(3), 2):
        assert combine(weights([place + 1 for place in some]), [shares[place] for place in some]) == secret


def test_a_constant_term_beyond_256_bits_is_no_secret() -> None:
    assert combine(weights([1]), [(2**256).to_bytes(33, "little")]) is None


def test_the_modulus_is_the_first_prime_above_all_secrets() -> None:
    """Fermat's test to 20 bases; no number between passes that to base 3."""
    assert PRIME == 2**256 + 297
    assert all(pow(base, PRIME - 1, PRIME) == 1 for base in range(2, 22))
    assert [number for number in range(2**256 + 1, PRIME, 2) if pow(3, number - 1, number) == 1] == []
