"""Shares of a count, as whole numbers."""

from __future__ import annotations

import math
from fractions import Fraction


def ceil_share(share: float, count: int) -> int:
    """Returns ⌈share · count⌉ of the share's decimal value: in floats 0.07 · 100 is above 7."""
    return math.ceil(Fraction(str(share)) * count)
