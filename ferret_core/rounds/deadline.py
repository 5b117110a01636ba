"""Deadline of a round, from the durations of recent rounds' contributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median_high

DEFAULT_SECONDS = 3600.0
"""Deadline while nothing is known about the participants."""
SHORTEST_SECONDS = 300.0
"""Long enough for a lost lease and its repeated work."""
LONGEST_SECONDS = 24 * 3600.0
RECENT_ROUNDS = 3
FEWEST_ARRIVALS = 3
DEVIATIONS = 6
"""Median absolute deviations beyond the median: about four standard deviations of a normal distribution."""
MARGIN = 2
MOST_DOUBLINGS = 5
"""Doublings of the default after which it exceeds the maximum."""


def adaptive(arrivals: Sequence[float], share: float, attempt: int = 1) -> float:
    """Returns the seconds from a round's opening to its deadline.

    ``arrivals``: seconds from the opening of recent rounds to each contribution, ``inf`` for missing ones. ``share``:
    share of the invited participants that makes the quorum. The deadline is the median plus six median absolute
    deviations, and at least twice the time of the quorum's share or of half the contributions, whichever is later.
    Late, slow or lying participants, if fewer than half and than the quorum can do without, move it no further than the
    honest ones' spread. It is the default if less than three arrivals are known or too many are missing. A repeated
    ``attempt`` at a round after a missed quorum has at least the default, doubled each time, so that a model that
    trains for hours gets enough time.

    After F. Hampel, The influence curve and its role in robust estimation, JASA 69 (1974): median and MAD.
    """
    patience = min(DEFAULT_SECONDS * 2 ** min(attempt - 1, MOST_DOUBLINGS), LONGEST_SECONDS)
    if len(arrivals) < FEWEST_ARRIVALS:
        return patience
    ordered = sorted(arrivals)
    middle = median_high(ordered)
    enough = max(middle, ordered[math.ceil(min(share, 1.0) * len(ordered)) - 1])
    if math.isinf(enough):
        return patience
    deviation = median_high(abs(seconds - middle) for seconds in ordered)
    seconds = max(middle + DEVIATIONS * deviation, MARGIN * enough)
    return min(max(seconds, SHORTEST_SECONDS if attempt == 1 else patience), LONGEST_SECONDS)
