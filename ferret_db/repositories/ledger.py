"""The replayable record of rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from ferret_core.ledger.record import GroupRecord
from ferret_core.protocol.errors import FerretError
from ferret_db.tables import LedgerEntry


def add(s: Session, entry: LedgerEntry) -> None:
    s.add(entry)
    s.flush()


def get(s: Session, experiment_id: str, round: int) -> LedgerEntry:
    """Returns the committed round's entry, or raises ``round.not_found``."""
    found = s.get(LedgerEntry, (experiment_id, round))
    if found is None:
        raise FerretError.of_field("round.not_found", "round", round, f"is not a committed round of {experiment_id}")
    return found


def before(s: Session, experiment_id: str, round: int) -> Iterator[LedgerEntry]:
    """Yields the entries of earlier rounds, the newest first."""
    query = select(LedgerEntry).where(LedgerEntry.experiment_id == experiment_id, LedgerEntry.round < round)
    yield from s.scalars(query.order_by(LedgerEntry.round.desc()).execution_options(yield_per=20))


def after(s: Session, experiment_id: str, round: int, limit: int) -> list[LedgerEntry]:
    """Returns the next ``limit`` entries after ``round``; 0 is the base model."""
    return list(
        s.scalars(
            select(LedgerEntry)
            .where(LedgerEntry.experiment_id == experiment_id, LedgerEntry.round > round)
            .order_by(LedgerEntry.round)
            .limit(limit)
        )
    )


def groups(s: Session, experiment_id: str, rounds: Collection[int]) -> dict[int, list[GroupRecord]]:
    """Returns the secure sums in the records of committed rounds that have any."""
    if not rounds:
        return {}
    query = select(LedgerEntry.round, LedgerEntry.record["groups"])
    found = s.execute(query.where(LedgerEntry.experiment_id == experiment_id, LedgerEntry.round.in_(rounds)))
    return {number: [GroupRecord.model_validate(each) for each in sums] for number, sums in found if sums}
