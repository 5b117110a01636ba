"""How long a round may stay open, from how long the participants of recent rounds took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median_high

DEFAULT_SECONDS = 3600.0
"""While nothing is known of the participants."""
SHORTEST_SECONDS = 300.0
"""A lease that is lost, and its work done again, must fit."""
LONGEST_SECONDS = 24 * 3600.0
RECENT_ROUNDS = 3
FEWEST_ARRIVALS = 3
DEVIATIONS = 6
"""Median absolute deviations beyond the median: about four standard deviations of a normal distribution."""
MARGIN = 2
MOST_DOUBLINGS = 5
"""Of the default: beyond the longest."""


def adaptive(arrivals: Sequence[float], share: float, attempt: int = 1) -> float:
    """Seconds from a round's opening to its deadline.

    ``arrivals`` are the seconds from the opening of recent rounds to each contribution, ``inf`` for those that were
    asked and never came; ``share`` of the asked are the quorum. The deadline is the median and six median absolute
    deviations, and never less than twice the time in which the quorum's share had come, or half of them if that is
    more. Fewer late, slow or lying participants than half, or than the quorum can do without, move it no further than
    the honest ones' spread allows. It is the default while less than three arrivals are known or where too many never
    came. Another ``attempt`` at a round that missed its quorum has at least that, doubled each time: a model that takes
    hours to train gets them.

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
