"""What a user may do: a role for the person, scopes for each of the person's tokens."""

from __future__ import annotations

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
    """What a token is good for, within its user's role: what only looks, and what changes something."""

    READ = "read"
    WRITE = "write"
