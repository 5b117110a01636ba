"""Browser sessions: a random secret in a cookie, stored only as a hash."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_db import clock
from ferret_db.repositories import user_tokens
from ferret_db.tables import SESSION_DIGITS, SESSION_PREFIX, BrowserSession, User, UserToken, session_name

_SECRET_BYTES = 32


class Begun(NamedTuple):
    """A new session: its secret, which is shown once, and its end, ``seconds`` from now."""

    secret: str
    expires_at: datetime
    seconds: float


class Shown(NamedTuple):
    """A valid session: its user, and the token that it descends from, if any."""

    user: User
    token: UserToken | None


def begin(
    s: Session, user_id: str, issuer: str, seconds: float, *, token: UserToken | None = None, address: str | None = None
) -> Begun:
    """Starts a session of the user and deletes expired ones.

    ``issuer`` identifies the installation's admin token; another token ends the session. A session that was made with a
    ``token`` ends with it, at the latest when it expires. Raises ``auth.invalid`` if the token was revoked meanwhile.
    """
    user_tokens.hold(s, token)
    now = clock.now(s)
    s.execute(delete(BrowserSession).where(BrowserSession.expires_at <= now))
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    expires_at = now + timedelta(seconds=seconds)
    if token is not None and token.expires_at is not None:
        expires_at = min(expires_at, token.expires_at)
    s.add(
        BrowserSession(
            secret_hash=_hash(secret),
            user_id=user_id,
            issuer=issuer,
            expires_at=expires_at,
            token_id=token.id if token else None,
            address=address,
        )
    )
    s.flush()
    return Begun(secret, expires_at, (expires_at - now).total_seconds())


def shown(s: Session, secret: str, issuer: str) -> Shown | None:
    """Returns the session if it has neither ended nor expired and its user is enabled."""
    good = BrowserSession.issuer == issuer, BrowserSession.expires_at > clock.utcnow(), User.enabled
    query = (
        select(User, UserToken)
        .select_from(BrowserSession)
        .join(User, User.id == BrowserSession.user_id)
        .outerjoin(UserToken, UserToken.id == BrowserSession.token_id)
        .where(BrowserSession.secret_hash == _hash(secret), *good)
    )
    found = s.execute(query).one_or_none()
    return None if found is None else Shown(found[0], found[1])


def of_user(s: Session, user_id: str, issuers: Sequence[str]) -> list[BrowserSession]:
    """Returns the user's unexpired sessions of these ``issuers``, newest first."""
    good = BrowserSession.issuer.in_(issuers), BrowserSession.expires_at > clock.utcnow()
    query = select(BrowserSession).where(BrowserSession.user_id == user_id, *good)
    return list(s.scalars(query.order_by(BrowserSession.created_at.desc(), BrowserSession.secret_hash)))


def users_of(s: Session, shown: Iterable[str], issuer: str) -> dict[str, User]:
    """Returns the users of the sessions with these secrets, for sessions that :func:`shown` accepts."""
    hashes = {_hash(secret): secret for secret in shown}
    good = BrowserSession.issuer == issuer, BrowserSession.expires_at > clock.utcnow(), User.enabled
    query = select(BrowserSession.secret_hash, User).join(User, User.id == BrowserSession.user_id)
    found = s.execute(query.where(BrowserSession.secret_hash.in_(hashes), *good))
    return {hashes[secret_hash]: user for secret_hash, user in found}


def end_all(s: Session, user_id: str, *, but: str | None = None) -> int:
    """Ends all sessions of the user except the one with the secret ``but``. Returns their number."""
    others = () if but is None else (BrowserSession.secret_hash != _hash(but),)
    ended = delete(BrowserSession).where(BrowserSession.user_id == user_id, *others)
    return len(s.scalars(ended.returning(BrowserSession.secret_hash)).all())


def redeem(s: Session, secret: str, issuer: str) -> bool:
    """Ends the session if it has not expired. Returns True for exactly one of several concurrent calls."""
    good = BrowserSession.secret_hash == _hash(secret), BrowserSession.issuer == issuer
    redeemed = delete(BrowserSession).where(*good, BrowserSession.expires_at > clock.utcnow())
    return s.execute(redeemed.returning(BrowserSession.secret_hash)).one_or_none() is not None


def end_one(s: Session, user_id: str, session_id: str) -> None:
    """Ends the user's session with the public id ``session_id``. Raises ``session.not_found`` if it does not exist."""
    named = func.substr(BrowserSession.secret_hash, 1, SESSION_DIGITS) == session_id.removeprefix(SESSION_PREFIX)
    ended = delete(BrowserSession).where(BrowserSession.user_id == user_id, named)
    if not s.scalars(ended.returning(BrowserSession.secret_hash)).all():
        raise FerretError.of_field("session.not_found", "session", session_id, "the user has no such session")


def end(s: Session, secret: str) -> bool:
    """Ends the session. Returns True if this call did."""
    ended = delete(BrowserSession).where(BrowserSession.secret_hash == _hash(secret))
    return s.execute(ended.returning(BrowserSession.secret_hash)).one_or_none() is not None


def name_of(secret: str) -> str:
    """Returns the public id of the session with this secret, as ``BrowserSession.id``."""
    return session_name(_hash(secret))


def _hash(secret: str) -> str:
    return digest_bytes(secret.encode())
