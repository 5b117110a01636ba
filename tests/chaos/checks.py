"""What a storm left behind, counted in the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from math import ceil
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from ferret_core.protocol.states import RoundState
from ferret_db.tables import Contribution, Event, LedgerEntry, Round
from tests.chaos.killer import Hit


def contributions(s: Session, experiment_id: str, expected: set[tuple[int, str]]) -> dict[str, int]:
    """How many of the ``expected`` (round, participant) are ``lost``, and how many count more than once (``doubled``).

    What moved the model stands in the ledger; each must be the one that was accepted, and each accepted must be there.
    """
    folded = [
        (entry.round, participant, digest)
        for entry in s.scalars(select(LedgerEntry).where(LedgerEntry.experiment_id == experiment_id))
        for participant, digest in entry.record["contributions"]
    ]
    rows = s.scalars(select(Contribution).where(Contribution.experiment_id == experiment_id))
    accepted = [(row.round, row.participant, row.digest) for row in rows]
    return {
        "contributions": len(folded),
        "lost": len(expected - set(_whose(folded))) + len(set(accepted) ^ set(folded)),
        "doubled": sum(len(all_) - len(set(_whose(all_))) for all_ in (folded, accepted)),
    }


def rounds(s: Session, experiment_id: str, last: int) -> dict[str, Any]:
    """How many rounds were committed, and whether each of 1 … ``last`` was so once, by its row and by its event."""
    of_experiment = Round.experiment_id == experiment_id, Round.state == RoundState.COMMITTED
    told = Event.experiment_id == experiment_id, Event.type == "round.committed"
    rows = Counter(s.scalars(select(Round.number).where(*of_experiment)))
    events = Counter(s.scalars(select(Event.round).where(*told)))
    once = dict.fromkeys(range(1, last + 1), 1)
    return {"rounds": rows.total(), "committed_once": dict(rows) == once == dict(events)}


def recovery(hits: Sequence[Hit], events: Sequence[datetime]) -> dict[str, Any]:
    """Seconds from each kill to the experiment's next event: median, 99th percentile, longest and whose."""
    waits = sorted(
        (min((event - hit.moment).total_seconds() for event in events if event > hit.moment), hit) for hit in hits
    )
    ranks = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    found = {f"recovery_{name}_s": round(waits[ceil(share * len(waits)) - 1][0], 3) for name, share in ranks.items()}
    return found | {"slowest": waits[-1][1].victim}


def replacements(seconds: Sequence[float]) -> dict[str, Any]:
    """How many stopped processes the supervisor replaced, and how long after the strike."""
    found = {"replaced": len(seconds)}
    return found | {"replaced_max_s": round(max(seconds), 3)} if seconds else found


def _whose(all_: Sequence[tuple[int, str, str]]) -> list[tuple[int, str]]:
    return [(number, participant) for number, participant, _ in all_]
