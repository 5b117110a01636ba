"""Users' tokens: shown once, kept as hashes."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Scope
from ferret_db import clock
from ferret_db.tables import User, UserToken

PREFIX = "ferret_user_"
"""By which a user's token is told from a participant's, and found where it was published by mistake."""
USED_SECONDS = 60
"""The last use is noted this often at most: not every request writes."""

_SECRET_BYTES = 32


class Shown(NamedTuple):
    """A token that was shown: its user, and whether it can be used no more."""

    user: User
    token: UserToken
    expired: bool
    stale: bool
    """Whether its last use has to be noted anew."""


def create(
    s: Session, user_id: str, name: str, scopes: Iterable[Scope], seconds: float | None
) -> tuple[UserToken, str]:
    """A token of the user, and its text, which is shown only this once; None ``seconds``: it does not expire."""
    text = PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
    expires_at = None if seconds is None else clock.now(s) + timedelta(seconds=seconds)
    token = UserToken(
        user_id=user_id,
        name=name,
        token_hash=_hash(text),
        scopes=sorted({scope.value for scope in scopes}),
        expires_at=expires_at,
    )
    try:
        with s.begin_nested():
            s.add(token)
    except IntegrityError as error:
        reason = "is the name of a token that the user has; choose another, or revoke that one"
        raise FerretError.of_field("token.conflict", "name", name, reason) from error
    return token, text


def shown(s: Session, text: str) -> Shown | None:
    """What is known of the token, None for one that was never made or is revoked."""
    return all_shown(s, [text]).get(text)


def all_shown(s: Session, texts: Iterable[str]) -> dict[str, Shown]:
    """The same for many: what is known of those that were made and are not revoked."""
    hashes = {_hash(text): text for text in texts}
    query = select(User, UserToken).join(UserToken).where(UserToken.token_hash.in_(hashes))
    found = s.execute(query).all()
    if not found:
        return {}
    now = clock.now(s)
    return {hashes[token.token_hash]: _shown(user, token, now) for user, token in found}


def used(s: Session, token_id: str) -> None:
    """Notes that the token was used now."""
    s.execute(
        update(UserToken).where(UserToken.id == token_id).values(used_at=clock.utcnow()),
        execution_options={"synchronize_session": False},
    )


def of_user(s: Session, user_id: str) -> list[UserToken]:
    """The user's tokens by name."""
    return list(s.scalars(select(UserToken).where(UserToken.user_id == user_id).order_by(UserToken.name)))


def revoke(s: Session, user_id: str, token_id: str) -> str:
    """Forgets a token of the user, and gives its name; ``token.not_found`` if there is none."""
    gone = delete(UserToken).where(UserToken.user_id == user_id, UserToken.id == token_id).returning(UserToken.name)
    name = s.scalars(gone, execution_options={"synchronize_session": False}).one_or_none()
    if name is None:
        raise FerretError.of_field("token.not_found", "token", token_id, "the user has no such token")
    return name


def _shown(user: User, token: UserToken, now: datetime) -> Shown:
    expired = token.expires_at is not None and token.expires_at <= now
    stale = token.used_at is None or now - token.used_at > timedelta(seconds=USED_SECONDS)
    return Shown(user, token, expired, stale)


def _hash(text: str) -> str:
    return digest_bytes(text.encode("utf-8", "surrogateescape"))
