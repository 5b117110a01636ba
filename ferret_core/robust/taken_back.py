"""How much of a round's step the next one takes back: what the participants' rises say of it.

    m(a) = the lower median of the participants' r(a), for a = 1, ½, ¼ and ⅛ of the step
    the first a with m(a) ≤ rise is what stays of it, ⅛ if there is none; h = log₂ 1/a

A minority of those who sent rises cannot move a median beyond what the others measured. Where nobody sent any, the step
stays whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ferret_core.ledger import MOST_TAKEN_BACK, LedgerRecord, broken
from ferret_core.protocol.rises import unpacked
from ferret_core.protocol.wire import ContributionMeta
from ferret_core.robust.bounds import lower_median


def to_take_back(rises: Sequence[str], rise: float) -> int:
    """h, from the ``rises`` of those who sent some; ``rise`` is what is let pass."""
    if not rises:
        return 0
    medians = lower_median(np.array([unpacked(text) for text in rises]))
    within = np.flatnonzero(medians <= rise)
    return int(within[0]) if len(within) else MOST_TAKEN_BACK


def check(record: LedgerRecord, accepted: Iterable[ContributionMeta], rise: float) -> None:
    """Raises ``ledger.broken`` where ``record`` says another h than the contributions that are in its model."""
    if record.taken_back is None:
        return
    found = to_take_back([meta.rises for meta in accepted if meta.rises is not None], rise)
    if found != record.taken_back:
        raise broken(record, f"taken_back is {record.taken_back}, and its contributions' rises say {found}")
