"""Access of all open streams, checked together with a fixed number of queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_api.auth.admin_token import AdminToken
from ferret_core.protocol.roles import Role
from ferret_db.database import Database
from ferret_db.repositories import projects, sessions, user_tokens
from ferret_db.tables import User


class Claim(NamedTuple):
    """The credential of a stream, a token or the secret of a session, and the experiment that it follows."""

    credential: str
    experiment_id: str


def permitted(database: Database, admin: AdminToken, claims: Collection[Claim]) -> set[Claim]:
    """Returns the claims that are still valid. All of them were valid when their streams began."""
    lasting = {claim for claim in claims if admin.is_token(claim.credential)}
    with database.read() as s:
        users = _users(s, admin, {claim.credential for claim in claims} - {claim.credential for claim in lasting})
        seen = projects.seen(s, {(users[who].id, experiment) for who, experiment in claims if who in users})
    return lasting | {claim for claim in claims if _is_good(claim, users, seen)}


def _users(s: Session, admin: AdminToken, credentials: set[str]) -> Mapping[str, User]:
    tokens = {credential for credential in credentials if credential.startswith(user_tokens.PREFIX)}
    shown = user_tokens.all_shown(s, tokens)
    by_token = {text: found.user for text, found in shown.items() if found.user.enabled and not found.expired}
    return by_token | sessions.users_of(s, credentials - tokens, admin.fingerprint)


def _is_good(claim: Claim, users: Mapping[str, User], seen: Collection[tuple[str, str]]) -> bool:
    user = users.get(claim.credential)
    return user is not None and (user.role == Role.ADMIN or (user.id, claim.experiment_id) in seen)
