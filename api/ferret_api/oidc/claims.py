"""What a provider's claims about somebody mean here: a name and a role."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ferret_core.protocol.roles import Role

LONGEST_NAME = 80
_FOREIGN = re.compile(r"[^a-z0-9._@+-]+")
_NO_BEGINNING = "._@+-"


def lacking(claims: Mapping[str, Any], *names: str) -> bool:
    """Whether some claim is not among them."""
    return any(_find(claims, name) is None for name in names)


def role(claims: Mapping[str, Any], claim: str, roles: Mapping[str, Role], otherwise: Role | None) -> Role | None:
    """The highest of the ``roles`` that the claim's values stand for."""
    found = [roles[value] for value in values(claims, claim) if value in roles]
    return max(found, key=list(Role).index, default=otherwise)


def values(claims: Mapping[str, Any], claim: str) -> list[str]:
    """The texts in a claim, which may hold one or many."""
    found = _find(claims, claim)
    several: list[Any] = found if isinstance(found, list) else [found]
    return [value for value in several if isinstance(value, str)]


def account_name(claims: Mapping[str, Any], claim: str) -> str:
    """The claim's text, or the subject, as a name that an account may have."""
    text = (values(claims, claim) or [str(claims["sub"])])[0]
    return _FOREIGN.sub("-", text.lower()).lstrip(_NO_BEGINNING)[:LONGEST_NAME] or "user"


def _find(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, in which dots may also lead into objects: Keycloak has ``realm_access.roles``."""
    if name in claims:
        return claims[name]
    outer, _, inner = name.partition(".")
    return _find(claims[outer], inner) if inner and isinstance(claims.get(outer), Mapping) else None
