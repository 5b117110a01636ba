"""Browsers that are signed in: a random secret in a cookie, of which only the hash is kept."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from ferret_core.protocol.digest import digest_bytes
from ferret_db import clock
from ferret_db.tables import BrowserSession, User

_SECRET_BYTES = 32


def begin(s: Session, user_id: str, issuer: str, seconds: float) -> str:
    """The secret of a user's new session, shown only this once; those that have expired are forgotten.

    ``issuer`` names the installation's admin token: with another one the session is over.
    """
    now = clock.now(s)
    s.execute(delete(BrowserSession).where(BrowserSession.expires_at <= now))
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    expires_at = now + timedelta(seconds=seconds)
    s.add(BrowserSession(secret_hash=_hash(secret), user_id=user_id, issuer=issuer, expires_at=expires_at))
    s.flush()
    return secret


def user_of(s: Session, secret: str, issuer: str) -> User | None:
    """Whose session it is, if it has neither ended nor expired and its user is enabled."""
    return users_of(s, [secret], issuer).get(secret)


def users_of(s: Session, shown: Iterable[str], issuer: str) -> dict[str, User]:
    """The same for many: whose sessions these secrets are, where there is somebody."""
    hashes = {_hash(secret): secret for secret in shown}
    good = BrowserSession.issuer == issuer, BrowserSession.expires_at > clock.utcnow(), User.enabled
    query = select(BrowserSession.secret_hash, User).join(User, User.id == BrowserSession.user_id)
    found = s.execute(query.where(BrowserSession.secret_hash.in_(hashes), *good))
    return {hashes[secret_hash]: user for secret_hash, user in found}


def end_all(s: Session, user_id: str, *, but: str | None = None) -> None:
    """Ends all sessions of the user; the one with the secret ``but`` goes on."""
    others = () if but is None else (BrowserSession.secret_hash != _hash(but),)
    s.execute(delete(BrowserSession).where(BrowserSession.user_id == user_id, *others))


def redeem(s: Session, secret: str, issuer: str) -> bool:
    """Ends a session that has not expired; whether this call did, so that of several one alone is told so."""
    good = BrowserSession.secret_hash == _hash(secret), BrowserSession.issuer == issuer
    redeemed = delete(BrowserSession).where(*good, BrowserSession.expires_at > clock.utcnow())
    return s.execute(redeemed.returning(BrowserSession.secret_hash)).one_or_none() is not None


def end(s: Session, secret: str) -> bool:
    """Ends the session; whether this call did."""
    ended = delete(BrowserSession).where(BrowserSession.secret_hash == _hash(secret))
    return s.execute(ended.returning(BrowserSession.secret_hash)).one_or_none() is not None


def name_of(secret: str) -> str:
    """What the session is called where others read it: a part of the hash, which opens nothing."""
    return f"ses_{_hash(secret)[:16]}"


def _hash(secret: str) -> str:
    return digest_bytes(secret.encode())
