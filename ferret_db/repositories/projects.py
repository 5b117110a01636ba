"""Projects: created, read, changed, deleted; and their members. A session finds the projects in its reach."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import delete as deleted
from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_db.clock import utcnow
from ferret_db.pagination import Page, page, seek
from ferret_db.statements import upsert
from ferret_db.tables import FIRST_PROJECT, Alert, AlertDelivery, Experiment, Membership, Project, User

_FRESH: dict[str, Any] = {"populate_existing": True}


def create(s: Session, name: str, **values: Any) -> Project:
    """Creates a project without members. Raises ``project.conflict`` if the name is taken."""
    project = Project(name=name, **values)
    try:
        with s.begin_nested():
            s.add(project)
    except IntegrityError as error:
        raise FerretError.of_field("project.conflict", "name", name, "is taken; choose another name") from error
    return project


def get(s: Session, name: str) -> Project:
    """Returns the project, or raises ``project.not_found``."""
    found = s.scalars(select(Project).where(Project.name == name)).one_or_none()
    if found is None:
        raise _unknown(name)
    return found


def names(s: Session) -> list[str]:
    """Returns the names of all visible projects."""
    return list(s.scalars(select(Project.name).order_by(Project.name)))


def list_page(s: Session, limit: int, cursor: str | None = None) -> Page[Project]:
    """Lists projects by name."""
    rows = s.scalars(seek(select(Project), [Project.name], cursor, limit)).all()
    return page(rows, limit, lambda row: (row.name,))


def change(s: Session, name: str, **values: Any) -> Project:
    """Updates the project. Raises ``project.not_found``."""
    query = update(Project).where(Project.name == name).values(**values).returning(Project)
    changed = s.scalars(query, execution_options=_FRESH).one_or_none()
    if changed is None:
        raise _unknown(name)
    return changed


def delete(s: Session, name: str) -> None:
    """Deletes the project. Raises ``project.conflict`` if it has experiments or is the first one."""
    get(s, name)
    if name == FIRST_PROJECT:
        reason = "stays: an experiment belongs to it unless something else is said"
        raise FerretError.of_field("project.conflict", "project", name, reason)
    try:
        with s.begin_nested():
            for table in (Membership, AlertDelivery, Alert):
                s.execute(deleted(table).where(table.project == name))
            s.execute(deleted(Project).where(Project.name == name))
    except IntegrityError as error:
        reason = "has experiments: delete them first, see `ferret experiment list --project`"
        raise FerretError.of_field("project.conflict", "project", name, reason) from error


def members(s: Session, name: str) -> list[User]:
    """Returns the members by name."""
    query = select(User).join(Membership, Membership.user_id == User.id).where(Membership.project == name)
    return list(s.scalars(query.order_by(User.name)))


def add_member(s: Session, name: str, user_id: str) -> bool:
    """Makes the user a member of the project. Returns True if the membership is new."""
    row = upsert(s, Membership).values(project=name, user_id=user_id, created_at=utcnow())
    return s.execute(row.on_conflict_do_nothing().returning(Membership.user_id)).one_or_none() is not None


def remove_member(s: Session, name: str, user_id: str) -> bool:
    """Ends the membership. Returns True if it existed."""
    gone = deleted(Membership).where(Membership.project == name, Membership.user_id == user_id)
    return s.execute(gone.returning(Membership.user_id)).one_or_none() is not None


def seen(s: Session, pairs: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """Returns the pairs of user and experiment ids in which the user is a member of the experiment's project."""
    user_ids, experiment_ids = {user for user, _ in pairs}, {experiment for _, experiment in pairs}
    found = s.execute(select(Experiment.id, Experiment.project).where(Experiment.id.in_(experiment_ids)))
    project_of = dict(found.all())
    memberships = select(Membership.user_id, Membership.project).where(
        Membership.user_id.in_(user_ids), Membership.project.in_({*project_of.values()})
    )
    members = {(user, project) for user, project in s.execute(memberships)}
    return {(user, experiment) for user, experiment in pairs if (user, project_of.get(experiment)) in members}


def _unknown(name: str) -> FerretError:
    return FerretError.of_field("project.not_found", "project", name, "no such project; see `ferret project list`")
