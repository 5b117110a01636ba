"""An experiment's downloadable files."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_db.pagination import Page, page, seek
from ferret_db.tables import Artifact


def add_all(s: Session, rows: list[Artifact]) -> None:
    s.add_all(rows)
    s.flush()


def get(s: Session, experiment_id: str, artifact_id: str) -> Artifact:
    """Returns the experiment's artifact, or raises ``artifact.not_found``."""
    query = select(Artifact).where(Artifact.id == artifact_id, Artifact.experiment_id == experiment_id)
    found = s.scalars(query).one_or_none()
    if found is None:
        raise FerretError.of_field("artifact.not_found", "artifact", artifact_id, f"no such file of {experiment_id}")
    return found


def of_experiment(s: Session, experiment_id: str) -> list[Artifact]:
    """Returns all artifacts by round, kind and name."""
    query = select(Artifact).where(Artifact.experiment_id == experiment_id)
    return list(s.scalars(query.order_by(Artifact.round, Artifact.kind, Artifact.name)))


def list_page(s: Session, experiment_id: str, limit: int, cursor: str | None = None) -> Page[Artifact]:
    """Lists artifacts by round, kind and name."""
    query = select(Artifact).where(Artifact.experiment_id == experiment_id)
    rows = s.scalars(seek(query, (Artifact.round, Artifact.kind, Artifact.name), cursor, limit)).all()
    return page(rows, limit, lambda row: (row.round, row.kind, row.name))


def of_round(s: Session, experiment_id: str, round: int) -> list[Artifact]:
    """Returns the files written after ``round`` by name; empty if its model was not written."""
    query = select(Artifact).where(Artifact.experiment_id == experiment_id, Artifact.round == round)
    return list(s.scalars(query.order_by(Artifact.name)))


def rounds_of(s: Session, experiment_id: str) -> list[int]:
    """Returns the rounds with a written model, in order."""
    query = select(Artifact.round).where(Artifact.experiment_id == experiment_id).distinct().order_by(Artifact.round)
    return list(s.scalars(query))


def drop(s: Session, experiment_id: str, rounds: Sequence[int], names: Sequence[str] | None = None) -> None:
    """Deletes rows of files written after those rounds, all or only ``names``; garbage collection removes the files."""
    query = delete(Artifact).where(Artifact.experiment_id == experiment_id, Artifact.round.in_(rounds))
    if names is not None:
        query = query.where(Artifact.name.in_(names))
    s.execute(query)
