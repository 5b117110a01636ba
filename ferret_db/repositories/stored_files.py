"""References from the database to stored files, for garbage collection, checks and backups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import ColumnElement, SQLColumnExpression, and_, or_, select
from sqlalchemy.orm import Session, aliased

from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState
from ferret_core.storage import FileKind, blob_location
from ferret_db.tables import Artifact, Assignment, Contribution, Experiment, LedgerEntry, Round


class StoredFileRef(NamedTuple):
    """A reference to a stored file and its owner. ``name`` is the checkpoint file's, the participant's, or empty.

    ``needed`` is True if the experiment cannot continue without the file, or cannot rebuild it. It does not need later
    checkpoints than the base model, nor contributions that are in the model.
    """

    kind: FileKind
    experiment_id: str
    round: int
    name: str
    digest: str
    location: str
    needed: bool


def is_rebuildable(file: StoredFileRef) -> bool:
    """Returns True for a checkpoint after the base model: the ledger and the updates rebuild it."""
    return file.kind == FileKind.CHECKPOINT and not file.needed


def of_all(s: Session, experiment_id: str | None = None) -> Iterator[StoredFileRef]:
    """Yields every reference, or only one experiment's. A file may have several references.

    The memory of simulated clients counts only where it may be used again: from the last committed round with their
    contribution in the model, and from rounds that may still be committed.
    """
    yield from _checkpoints(s, experiment_id)
    yield from _updates(s, experiment_id)
    yield from _contributions(s, experiment_id)
    yield from _memories(s, experiment_id)


def _checkpoints(s: Session, experiment_id: str | None) -> Iterator[StoredFileRef]:
    query = select(Artifact.experiment_id, Artifact.round, Artifact.name, Artifact.digest, Artifact.location)
    for experiment, number, *file in s.execute(query.where(_within(Artifact.experiment_id, experiment_id))):
        yield StoredFileRef(FileKind.CHECKPOINT, experiment, number, *file, needed=number == 0)


def _updates(s: Session, experiment_id: str | None) -> Iterator[StoredFileRef]:
    query = select(LedgerEntry.experiment_id, LedgerEntry.round, LedgerEntry.update_digest)
    for experiment, number, digest in s.execute(query.where(_within(LedgerEntry.experiment_id, experiment_id))):
        yield _blob(FileKind.UPDATE, experiment, number, "", digest)


def _contributions(s: Session, experiment_id: str | None) -> Iterator[StoredFileRef]:
    """Contributions to central noise end with their round: later uses are of the noised sum alone."""
    needed = Contribution.round > Experiment.round
    kept = Experiment.spec["privacy"]["mechanism"].as_string().is_distinct_from("central")
    query = (
        select(Contribution.experiment_id, Contribution.round, Contribution.participant, Contribution.digest, needed)
        .join(Experiment, Experiment.id == Contribution.experiment_id)
        .join(Round, Round.id == Contribution.round_id)
        .where(_within(Contribution.experiment_id, experiment_id))
        .where(or_(kept, Round.state.in_([RoundState.OPEN, RoundState.FROZEN])))
    )
    for experiment, number, participant, digest, needed in s.execute(query):
        yield _blob(FileKind.CONTRIBUTION, experiment, number, participant, digest, bool(needed))


def _memories(s: Session, experiment_id: str | None) -> Iterator[StoredFileRef]:
    """The last memory is that of :func:`ferret_db.repositories.contributions.memory_of`."""
    later, later_round, later_work = aliased(Contribution), aliased(Round), aliased(Assignment)
    newer = (
        select(later.id)
        .join(later_round, later_round.id == later.round_id)
        .join(later_work, later_work.id == later.assignment_id)
        .where(later_work.state == AssignmentState.ACCEPTED)
        .where(later_round.state == RoundState.COMMITTED, later.experiment_id == Contribution.experiment_id)
        .where(later.participant == Contribution.participant, later.round > Contribution.round)
    )
    accepted = Assignment.state == AssignmentState.ACCEPTED
    last = and_(Round.state == RoundState.COMMITTED, accepted, ~newer.exists())
    query = (
        select(Contribution.experiment_id, Contribution.round, Contribution.participant, Contribution.memory_digest)
        .join(Round, Round.id == Contribution.round_id)
        .join(Assignment, Assignment.id == Contribution.assignment_id)
        .join(Experiment, Experiment.id == Contribution.experiment_id)
        .where(_within(Contribution.experiment_id, experiment_id), Contribution.memory_digest.is_not(None))
        .where(Experiment.state.not_in([ExperimentState.FAILED, ExperimentState.CANCELLED]))
        .where(or_(last, Round.state.in_([RoundState.OPEN, RoundState.FROZEN])))
    )
    for experiment, number, participant, digest in s.execute(query):
        yield _blob(FileKind.MEMORY, experiment, number, participant, str(digest))


def _within(column: SQLColumnExpression[str], experiment_id: str | None) -> ColumnElement[bool]:
    return column == experiment_id if experiment_id is not None else column.is_not(None)


def _blob(
    kind: FileKind, experiment_id: str, number: int, name: str, digest: str, needed: bool = True
) -> StoredFileRef:
    return StoredFileRef(kind, experiment_id, number, name, digest, blob_location(kind, digest), needed)
