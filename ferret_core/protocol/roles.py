"""What a user may do: a role for the person, scopes for each of the person's tokens."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class Role(StrEnum):
    """Each may do what the one before may, and more."""

    VIEWER = "viewer"
    RESEARCHER = "researcher"
    ADMIN = "admin"

    def covers(self, other: Role) -> bool:
        """Whether it may do all that ``other`` may."""
        order = list(Role)
        return order.index(self) >= order.index(other)


class Scope(StrEnum):
    """What a token is good for, within its user's role: what only looks, what changes something, and ``GET /metrics``
    alone, which ``read`` allows too."""

    READ = "read"
    WRITE = "write"
    METRICS = "metrics"

    def within(self, scopes: Collection[Scope]) -> bool:
        """True if a token with these ``scopes`` is good for it."""
        return self in scopes or (self == Scope.METRICS and Scope.READ in scopes)


EVERY_SCOPE = frozenset({Scope.READ, Scope.WRITE})
"""Of a session."""
