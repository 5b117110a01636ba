"""Account name and role from a provider's claims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ferret_core.protocol.roles import Role

LONGEST_NAME = 80
_FOREIGN = re.compile(r"[^a-z0-9._@+-]+")
_NO_BEGINNING = "._@+-"


def lacking(claims: Mapping[str, Any], *names: str) -> bool:
    """Returns True if one of the named claims is missing."""
    return any(_find(claims, name) is None for name in names)


def role(claims: Mapping[str, Any], claim: str, roles: Mapping[str, Role], otherwise: Role | None) -> Role | None:
    """Returns the highest of the ``roles`` for the claim's values, or ``otherwise`` without any."""
    found = [roles[value] for value in values(claims, claim) if value in roles]
    return max(found, key=list(Role).index, default=otherwise)


def values(claims: Mapping[str, Any], claim: str) -> list[str]:
    """Returns the strings in a claim, which may be one string or a list."""
    found = _find(claims, claim)
    several: list[Any] = found if isinstance(found, list) else [found]
    return [value for value in several if isinstance(value, str)]


def account_name(claims: Mapping[str, Any], claim: str) -> str:
    """Returns the claim's text, or else the subject, converted to a valid account name."""
    text = (values(claims, claim) or [str(claims["sub"])])[0]
    return _FOREIGN.sub("-", text.lower()).lstrip(_NO_BEGINNING)[:LONGEST_NAME] or "user"


def _find(claims: Mapping[str, Any], name: str) -> Any:
    """Returns a claim by name. Dots may select members of objects, as in Keycloak's ``realm_access.roles``."""
    if name in claims:
        return claims[name]
    outer, _, inner = name.partition(".")
    return _find(claims[outer], inner) if inner and isinstance(claims.get(outer), Mapping) else None
