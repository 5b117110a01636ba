"""The user whose tokens or sessions a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ferret_core.protocol.resources.users import User
    from ferret_sdk.service.users import People

OfUser = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help="Somebody else's, as an administrator; default: yours."),
]


def user(people: People, name: str | None) -> User | None:
    """The user of this name; None for oneself."""
    return None if name is None else people.user(name)
