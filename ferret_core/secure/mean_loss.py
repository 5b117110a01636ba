"""The mean training loss of a secure sum: ⌊2¹⁶ · loss⌉ of each member that has one, at most 64, and their number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ferret_core.secure.packing import Segment, Words

UNIT = 1 << 16
MOST = 64 * UNIT
SEGMENTS = (Segment(1, MOST), Segment(1, 1))


def integers(loss: float | None) -> list[NDArray[np.int64]]:
    """Returns a member's integers; ``loss`` is None if it is unknown."""
    known = loss is not None and np.isfinite(loss)
    value = round(min(max(UNIT * loss, 0), MOST)) if loss is not None and known else 0
    return [np.array([value]), np.array([int(known)])]


def mean(sums: Sequence[Words]) -> dict[str, float]:
    """Returns the metric of the members that have a loss; nothing if none has."""
    loss, known = (int(each[0]) for each in sums)
    return {"train_loss": loss / (UNIT * known)} if known else {}
