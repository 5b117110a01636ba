"""The readers of contributions, the protected records and the last audit of their protection, in words for people who
decide about taking part."""

from __future__ import annotations

from typing import NamedTuple

LAST_AUDIT = "on a small model 1,000 canaries at ε = 3 proved ε ≥ 0.05, and ε ≥ 1.01 without the noise"
"""The audit of record-level privacy in ``docs/results/leakage/leakage.md``."""


class Reader(NamedTuple):
    """The people or machines ``who`` read ``what``. Both are parts of a sentence: ``{who} read {what}.``"""

    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.who} read {self.what}."


def protected_records(unit: str) -> str:
    """Returns the records that noise hides, for a ``privacy.unit`` of records."""
    return "each example" if unit == "example" else f"all examples with the same {unit.removeprefix('field:')}"


def readers(*, separate: bool, least_summed: int | None, central: bool) -> tuple[Reader, ...]:
    """Returns the readers of contributions.

    ``separate``: a round's update shows each contribution separately. ``least_summed``: the least number of
    participants in a secure sum; None if the server reads each contribution. ``central``: the server adds the noise
    that protects records.
    """
    alone = "each contribution on its own"
    if central:
        read, update = f"{alone}, without noise", "the mean of a round's contributions with the server's noise"
    elif least_summed is not None:
        read = update = f"sums of the contributions of at least {least_summed} participants, and none on its own"
    else:
        read, update = alone, alone if separate else "the mean of a round's contributions"
    return (
        Reader("The server and the people who run it", read),
        Reader("The other participants of the experiment", update),
        Reader("The members of the experiment's project", f"{update}, once a round has enough participants"),
    )
