"""Users' tokens: shown once, stored as hashes."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Scope
from ferret_db import clock
from ferret_db.tables import BrowserSession, User, UserToken

PREFIX = "ferret_user_"
"""Prefix that distinguishes a user's token from a participant's, and lets secret scanners find leaked ones."""
USED_SECONDS = 60
"""Minimum seconds between two updates of the last use: not every request writes."""

_SECRET_BYTES = 32


class DisplayedToken(NamedTuple):
    """A presented token: its user, and whether it has expired."""

    user: User
    token: UserToken
    expired: bool
    stale: bool
    """True if its last use must be recorded again."""


class Ended(NamedTuple):
    """Revoked tokens by name, and the number of sessions and further tokens made with them, which have ended too."""

    names: list[str]
    tokens: int
    sessions: int


def create(
    s: Session,
    user_id: str,
    name: str,
    scopes: Iterable[Scope],
    seconds: float | None,
    *,
    parent: UserToken | None = None,
) -> tuple[UserToken, str]:
    """Creates a token of the user. Returns its text too, which is shown once. It does not expire if ``seconds`` is
    None.

    A token that was made with another one, its ``parent``, expires with the parent at the latest. Raises
    ``auth.invalid`` if the parent was revoked meanwhile.
    """
    hold(s, parent)
    text = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    expires_at = None if seconds is None else clock.now(s) + timedelta(seconds=seconds)
    if parent is not None and parent.expires_at is not None:
        expires_at = min(expires_at or parent.expires_at, parent.expires_at)
    token = UserToken(
        user_id=user_id,
        name=name,
        token_hash=_hash(text),
        scopes=sorted({scope.value for scope in scopes}),
        parent_id=parent.id if parent else None,
        expires_at=expires_at,
    )
    try:
        with s.begin_nested():
            s.add(token)
    except IntegrityError as error:
        reason = "is the name of a token that the user has; choose another, or revoke that one"
        raise FerretError.of_field("token.conflict", "name", name, reason) from error
    return token, text


def shown(s: Session, text: str) -> DisplayedToken | None:
    """Returns the presented token, or None if it never existed or is revoked."""
    return all_shown(s, [text]).get(text)


def all_shown(s: Session, texts: Iterable[str]) -> dict[str, DisplayedToken]:
    """Returns the presented tokens that exist, by text."""
    hashes = {_hash(text): text for text in texts}
    query = select(User, UserToken).join(UserToken).where(UserToken.token_hash.in_(hashes))
    found = s.execute(query).all()
    if not found:
        return {}
    now = clock.now(s)
    return {hashes[token.token_hash]: _shown(user, token, now) for user, token in found}


def used(s: Session, token_id: str) -> None:
    """Records that the token was used now."""
    s.execute(update(UserToken).where(UserToken.id == token_id).values(used_at=clock.utcnow()))


def of_user(s: Session, user_id: str) -> list[UserToken]:
    """Returns the user's tokens by name."""
    return list(s.scalars(select(UserToken).where(UserToken.user_id == user_id).order_by(UserToken.name)))


def hold(s: Session, token: UserToken | None) -> None:
    """Locks the token, if given, until the transaction ends. Raises ``auth.invalid`` if it was revoked."""
    if token is None:
        return
    held = select(UserToken.id).where(UserToken.id == token.id).with_for_update(read=True, key_share=True)
    if s.scalars(held).one_or_none() is None:
        raise FerretError("auth.invalid", "the token was revoked; create another one")


def revoke(s: Session, user_id: str, token_id: str) -> Ended:
    """Deletes a token of the user with all that was made with it. Raises ``token.not_found`` if it does not exist."""
    ended = _revoke(s, UserToken.user_id == user_id, UserToken.id == token_id)
    if not ended.names:
        raise FerretError.of_field("token.not_found", "token", token_id, "the user has no such token")
    return ended


def revoke_all(s: Session, user_id: str) -> Ended:
    """Deletes all tokens of the user with all that was made with them."""
    return _revoke(s, UserToken.user_id == user_id)


def _revoke(s: Session, *which: ColumnElement[bool]) -> Ended:
    """Deletes these tokens; the database deletes their descendants."""
    names = list(s.scalars(select(UserToken.name).where(*which)))
    made = select(UserToken.id).where(*which).cte("made", recursive=True)
    made = made.union(select(UserToken.id).join(made, UserToken.parent_id == made.c.id))
    tokens = s.scalars(select(func.count()).select_from(made)).one() - len(names)
    in_browsers = select(func.count()).select_from(BrowserSession).join(made, BrowserSession.token_id == made.c.id)
    ended = Ended(names, tokens, s.scalars(in_browsers).one())
    s.execute(delete(UserToken).where(*which))
    return ended


def _shown(user: User, token: UserToken, now: datetime) -> DisplayedToken:
    expired = token.expires_at is not None and token.expires_at <= now
    stale = token.used_at is None or now - token.used_at > timedelta(seconds=USED_SECONDS)
    return DisplayedToken(user, token, expired, stale)


def _hash(text: str) -> str:
    return digest_bytes(text.encode("utf-8", "surrogateescape"))
