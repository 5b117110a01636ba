"""Permissions of users: a role per person, scopes per token."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class Role(StrEnum):
    """Roles in ascending order; each includes the permissions of the previous one."""

    VIEWER = "viewer"
    RESEARCHER = "researcher"
    ADMIN = "admin"

    def covers(self, other: Role) -> bool:
        """True if this role includes all permissions of ``other``."""
        order = list(Role)
        return order.index(self) >= order.index(other)


class Scope(StrEnum):
    """Scopes of a token, within its user's role: reading, changing, and ``GET /metrics`` alone, which ``read`` allows
    too."""

    READ = "read"
    WRITE = "write"
    METRICS = "metrics"

    def within(self, scopes: Collection[Scope]) -> bool:
        """True if a token with these ``scopes`` has this one."""
        return self in scopes or (self == Scope.METRICS and Scope.READ in scopes)


EVERY_SCOPE = frozenset({Scope.READ, Scope.WRITE})
"""Scopes of a session."""
