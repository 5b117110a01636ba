"""Users: created, read, changed. Passwords arrive hashed."""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

from sqlalchemy import select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Role
from ferret_db.pagination import Page, page, seek
from ferret_db.repositories import sessions, user_tokens
from ferret_db.tables import User

_ENDING_BYTES = 4

INSTALLATION = "admin"
"""The user of the installation's admin token: always present, enabled, and an administrator."""


def create(s: Session, name: str, role: Role, password_hash: str | None) -> User:
    """Creates a user. Raises ``user.conflict`` if the name is taken."""
    user = User(name=name, role=role, password_hash=password_hash)
    try:
        with s.begin_nested():
            s.add(user)
    except IntegrityError as error:
        raise FerretError.of_field("user.conflict", "name", name, "is taken; choose another name") from error
    return user


def get(s: Session, user_id: str) -> User:
    """Returns the user, or raises ``user.not_found``."""
    found = s.get(User, user_id, populate_existing=True)
    if found is None:
        raise FerretError.of_field("user.not_found", "user", user_id, "no such user; see `ferret user list`")
    return found


def by_name(s: Session, name: str) -> User | None:
    return s.scalars(select(User).where(User.name == name)).one_or_none()


def of_identity(s: Session, issuer: str, subject: str) -> User | None:
    """Returns the user that the OpenID Connect provider ``issuer`` identifies as ``subject``."""
    return s.scalars(select(User).where(User.issuer == issuer, User.subject == subject)).one_or_none()


def create_of_identity(s: Session, issuer: str, subject: str, name: str, role: Role) -> User:
    """Creates a user who signs in at ``issuer``. A taken name gets a suffix: names link no accounts."""
    for tried in (name, f"{name}-{secrets.token_hex(_ENDING_BYTES)}"):
        user = User(name=tried, role=role, issuer=issuer, subject=subject)
        try:
            with s.begin_nested():
                s.add(user)
        except IntegrityError:
            if found := of_identity(s, issuer, subject):  # created by another browser simultaneously
                return found
        else:
            return user
    raise FerretError.of_field("user.conflict", "name", name, "is taken, with other endings too; sign in again")


class ShutOut(NamedTuple):
    """A user's ended sessions and tokens, and whether the role was above the lowest."""

    sessions: int
    tokens: int
    demoted: bool


def shut_out(s: Session, user_id: str) -> ShutOut:
    """Leaves the user the lowest role, no session and no token. All that was made with the tokens ends too."""
    demoted = get(s, user_id).role != Role.VIEWER
    s.execute(update(User).where(User.id == user_id).values(role=Role.VIEWER))
    ended = user_tokens.revoke_all(s, user_id)
    return ShutOut(ended.sessions + sessions.end_all(s, user_id), len(ended.names) + ended.tokens, demoted)


def list_page(s: Session, limit: int, cursor: str | None = None) -> Page[User]:
    """Lists users by name."""
    rows = s.scalars(seek(select(User), [User.name], cursor, limit)).all()
    return page(rows, limit, lambda row: (row.name,))


def change(s: Session, user_id: str, *, session: str | None = None, **values: Any) -> User:
    """Updates the user. Raises ``user.conflict`` for the role or state of the installation's administrator, and for a
    password of a user who signs in at a provider.

    A new password, or disabling, ends all sessions of the user except the ``session`` with this secret.
    """
    issuer = get(s, user_id).issuer
    if issuer is not None and "password_hash" in values:
        raise FerretError.of_field("user.conflict", "user", user_id, f"signs in at {issuer}, and has no password here")
    if user_id == INSTALLATION and values.keys() & {"role", "enabled"}:
        reason = "has the admin token and stays an administrator: without an administrator, no one could add users"
        raise FerretError.of_field("user.conflict", "user", user_id, reason)
    if values.keys() & {"password_hash", "enabled"}:
        sessions.end_all(s, user_id, but=session)
    changed = update(User).where(User.id == user_id).values(**values).returning(User)
    return s.scalars(changed, execution_options={"populate_existing": True}).one()
