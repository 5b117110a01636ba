"""Shamir's secret sharing of 32 bytes: any t of n shares give the secret, fewer say nothing about it.

A. Shamir, "How to share a secret", CACM 1979. Over the integers modulo the prime p = 2²⁵⁶ + 297, a secret is the
constant term of a random polynomial of degree t − 1. A share is its value at the holder's point: the place in the
roster plus 1. Numbers are little-endian: a secret has 32 bytes, a share 33.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

PRIME = 2**256 + 297
SECRET_BYTES = 32
SHARE_BYTES = 33


def split(secret: bytes, threshold: int, count: int, draw: Callable[[int], int] = secrets.randbelow) -> list[bytes]:
    """Returns the shares at the points 1 … ``count``; ``draw(p)`` draws a coefficient below p."""
    coefficients = [int.from_bytes(secret, "little"), *(draw(PRIME) for _ in range(threshold - 1))]
    return [_value(coefficients, point).to_bytes(SHARE_BYTES, "little") for point in range(1, count + 1)]


def weights(points: Sequence[int]) -> list[int]:
    """Returns a factor for each share at these different points: so weighted, the shares add up to the secret."""
    found = list[int]()
    for point in points:
        above, below = 1, 1
        for other in points:
            if other != point:
                above, below = above * other % PRIME, below * (other - point) % PRIME
        found.append(above * pow(below, -1, PRIME) % PRIME)
    return found


def combine(weights: Sequence[int], shares: Sequence[bytes]) -> bytes | None:
    """Returns the secret of ``threshold`` shares, or None if they give none: not all are of one secret."""
    pairs = zip(weights, shares, strict=True)
    total = sum(weight * int.from_bytes(share, "little") for weight, share in pairs) % PRIME
    return total.to_bytes(SECRET_BYTES, "little") if total < 1 << 8 * SECRET_BYTES else None


def _value(coefficients: Sequence[int], point: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * point + coefficient) % PRIME
    return value
