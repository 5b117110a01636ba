"""Rises: by what share the step of the round before has raised a participant's loss, as they travel.

    r(a) = (L(a) − L(0)) / max(L(0), 1 nat)        for a = 1, ½, ¼ and ⅛ of that step

Four numbers in half precision, little-endian, written as 16 hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import AfterValidator

SHARES = (1.0, 0.5, 0.25, 0.125)
"""Of the step, in the order of the rises."""
LEAST_LOSS = 1.0
"""Nats per token: below it, a few sequences rise and fall by large factors that mean nothing."""
GREATEST = 65504.0
"""The greatest finite number in half precision. It stands for a loss that is none."""


def rise(before: float, after: float) -> float:
    """r of a loss that was ``before`` and is ``after``, both in nats per token."""
    return (after - before) / max(before, LEAST_LOSS)


def packed(rises: Sequence[float]) -> str:
    """The text of four rises; beyond half precision they are its end."""
    return np.clip(rises, -GREATEST, GREATEST).astype("<f2").tobytes().hex()


def unpacked(text: str) -> tuple[float, ...]:
    """The four rises in ``text``; ``ValueError`` where it is not that of four finite numbers."""
    if re.fullmatch(f"[0-9a-f]{{{4 * len(SHARES)}}}", text) is None:
        raise ValueError(f"must be {4 * len(SHARES)} hexadecimal digits: four fp16 numbers, little-endian")
    found = np.frombuffer(bytes.fromhex(text), "<f2")
    if not np.isfinite(found).all():
        raise ValueError(f"must be four finite numbers; write {GREATEST:g} for a loss that is none")
    return tuple(found.tolist())


def _checked(text: str) -> str:
    unpacked(text)
    return text


Rises = Annotated[str, AfterValidator(_checked)]
