"""The rows that a session sees: every experiment, one user's projects, participants' rows, or none.

The rows of all others are left out of every query, whatever the query: one without its own check shows too little,
never too much. Inserted rows are not checked; each belongs to an experiment or a project that was found before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Engine, Select, event, false, select
from sqlalchemy.orm import ORMExecuteState, Session, with_loader_criteria
from sqlalchemy.sql.base import ExecutableOption

from ferret_core.replica.export import ADAPTERS
from ferret_db.tables import Artifact, Base, Experiment, Membership, Project

_CRITERIA = "ferret_criteria"
_UNSYNCHRONISED = {"synchronize_session": False}
"""Updates and deletions leave loaded objects as they are: who needs the new values reads or returns them."""
# Plain tables: a criterion on a mapped class would also apply to the query inside it.
_EXPERIMENTS, _MEMBERSHIPS, _PROJECTS = (table.__table__.c for table in (Experiment, Membership, Project))


@dataclass(frozen=True)
class Reach:
    """``projects`` selects the names of the visible projects, with all that belongs to them; None: all are visible.
    Without ``base_path`` the files of adapters that hold the path of the base model are left out.
    """

    projects: Select[tuple[str]] | None
    base_path: bool = True

    @classmethod
    def of_member(cls, user_id: str) -> Reach:
        """Returns the reach of the projects that the user is a member of while the query runs."""
        return cls(select(_MEMBERSHIPS.project).where(_MEMBERSHIPS.user_id == user_id))

    def open(self, engine: Engine) -> Session:
        """Opens a session limited to this reach."""
        criteria = [] if self.projects is None else _criteria(self.projects)
        if not self.base_path:
            criteria.append(with_loader_criteria(Artifact, Artifact.name != ADAPTERS))
        kind = _NarrowSession if criteria else Session
        return kind(engine, expire_on_commit=False, execution_options=_UNSYNCHRONISED, info={_CRITERIA: criteria})


EVERYTHING = Reach(None)
FOR_PARTICIPANTS = Reach(None, base_path=False)
NOTHING = Reach(select(_PROJECTS.name).where(false()))


class _NarrowSession(Session):
    """A session with restricted queries."""


@event.listens_for(_NarrowSession, "do_orm_execute")
def _narrow(state: ORMExecuteState) -> None:
    if not state.is_insert:
        state.statement = state.statement.options(*state.session.info[_CRITERIA])


def _criteria(projects: Select[tuple[str]]) -> list[ExecutableOption]:
    found = ((mapper.class_, _belongs(mapper.columns, projects)) for mapper in Base.registry.mappers)
    return [with_loader_criteria(table, belongs) for table, belongs in found if belongs is not None]


def _belongs(columns: Any, projects: Select[tuple[str]]) -> ColumnElement[bool] | None:
    """The condition that a row is of one of ``projects``, or None if the table has no project."""
    if "project" in columns:
        return columns.project.in_(projects)
    if "experiment_id" in columns:
        return columns.experiment_id.in_(select(_EXPERIMENTS.id).where(_EXPERIMENTS.project.in_(projects)))
    return columns.name.in_(projects) if columns is Project.__mapper__.columns else None
