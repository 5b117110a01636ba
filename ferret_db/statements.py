"""Statements that SQLAlchemy lacks on both databases: ``INSERT … ON CONFLICT``, and compare-and-swap of a state."""

from __future__ import annotations

from typing import Any, TypeVar

from sqlalchemy import update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState, may_move
from ferret_db.tables import Assignment, Base, Experiment, Round

Insert = sqlite.Insert | postgresql.Insert
R = TypeVar("R", Experiment, Round, Assignment)


def upsert(s: Session, table: type[Base]) -> Insert:
    """Creates an insertion into ``table`` that supports ``on_conflict``."""
    return sqlite.insert(table) if s.get_bind().dialect.name == "sqlite" else postgresql.insert(table)


def swap(s: Session, row: R, after: ExperimentState | RoundState | AssignmentState, **values: Any) -> R | None:
    """Moves ``row`` to the state ``after``, with other ``values``. Returns None if another transaction moved it first.

    Only a row that still has the state and version of ``row`` is changed. A move that ``ferret_core.protocol.states``
    does not list is a bug in the caller.
    """
    assert may_move(row.state, after), f"{row.id} cannot go from {row.state} to {after}"
    table: Any = type(row)
    return s.scalars(
        update(table)
        .where(table.id == row.id, table.state == row.state, table.version == row.version)
        .values(state=after, version=row.version + 1, **values)
        .returning(table),
        execution_options={"populate_existing": True},
    ).one_or_none()
