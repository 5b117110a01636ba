"""Users: made, found, changed. Passwords come here hashed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Role
from ferret_db.pagination import Page, page, seek
from ferret_db.repositories import sessions
from ferret_db.tables import User

INSTALLATION = "admin"
"""The user who has the installation's admin token: always there, enabled, and an administrator."""


def create(s: Session, name: str, role: Role, password_hash: str | None) -> User:
    """A new user, ``user.conflict`` if the name is taken."""
    user = User(name=name, role=role, password_hash=password_hash)
    try:
        with s.begin_nested():
            s.add(user)
    except IntegrityError as error:
        raise FerretError.of_field("user.conflict", "name", name, "is taken; choose another name") from error
    return user


def get(s: Session, user_id: str) -> User:
    """The user, or ``user.not_found``."""
    found = s.get(User, user_id, populate_existing=True)
    if found is None:
        raise FerretError.of_field("user.not_found", "user", user_id, "no such user; see `ferret user list`")
    return found


def by_name(s: Session, name: str) -> User | None:
    return s.scalars(select(User).where(User.name == name)).one_or_none()


def list_page(s: Session, limit: int, cursor: str | None = None) -> Page[User]:
    """By name."""
    rows = s.scalars(seek(select(User), [User.name], cursor, limit)).all()
    return page(rows, limit, lambda row: (row.name,))


def change(s: Session, user_id: str, *, session: str | None = None, **values: Any) -> User:
    """The user with other values; ``user.conflict`` for the role or state of the installation's administrator.

    Who gets another password, or is disabled, is signed out everywhere but in the ``session`` with this secret.
    """
    get(s, user_id)
    if user_id == INSTALLATION and values.keys() & {"role", "enabled"}:
        reason = "has the admin token, and stays an administrator: without one nobody could let anybody in"
        raise FerretError.of_field("user.conflict", "user", user_id, reason)
    if values.keys() & {"password_hash", "enabled"}:
        sessions.end_all(s, user_id, but=session)
    changed = update(User).where(User.id == user_id).values(**values).returning(User)
    return s.scalars(changed, execution_options={"populate_existing": True, "synchronize_session": False}).one()
