"""Poisson sampling of units by coins that nobody else can know."""

from __future__ import annotations

import secrets

import numpy as np


def draw(units: int, rate: float) -> list[int]:
    """Returns the positions of the drawn units: each with probability ⌊2⁶⁴ · ``rate``⌋ / 2⁶⁴, at most ``rate``,
    independent of the others and of every seed of the experiment."""
    if rate >= 1:
        return list(range(units))
    coins = np.frombuffer(secrets.token_bytes(8 * units), np.uint64)
    return np.flatnonzero(coins < np.uint64(int(rate * 2**64))).tolist()
