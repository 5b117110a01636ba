"""Request bodies for users and tokens."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from ferret_api.schemas import Command
from ferret_core.protocol.roles import Role, Scope
from ferret_core.protocol.sanitize import Line

YEAR = 366 * 24 * 3600

UserName = Annotated[
    str,
    StringConstraints(to_lower=True, min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$"),
    Field(description="Unique; letters (converted to lower case), digits, and `.` `_` `@` `+` `-`"),
]
Password = Annotated[str, Field(min_length=12, max_length=200, description="At least 12 characters")]


class NewUser(Command, json_schema_extra={"examples": [{"name": "ada", "role": "researcher"}]}):
    """Request to create a user. Without a password the user has tokens only."""

    name: UserName
    role: Role
    password: Password | None = Field(default=None, repr=False)


class UserChange(Command, json_schema_extra={"examples": [{"enabled": False}]}):
    """Request to change a user. Changing the password or disabling the user signs it out everywhere."""

    role: Role | None = None
    enabled: bool | None = None
    password: Password | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _something(self) -> UserChange:
        if self.role is None and self.enabled is None and self.password is None:
            raise ValueError("nothing is to be changed: give role, enabled or password")
        return self


class NewPassword(
    Command,
    json_schema_extra={
        "examples": [{"current": "the sentence until now", "password": "another sentence from now on"}]  # nosec B105
    },
):
    """Request to change one's password."""

    current: str = Field(max_length=200, repr=False)
    password: Password = Field(repr=False)


class NewToken(
    Command,
    json_schema_extra={"examples": [{"name": "notebook", "scopes": ["read", "write"], "expires_seconds": 2592000}]},
):
    """Request to create a token."""

    name: Annotated[Line, Field(min_length=1, max_length=100, description="Label for the place of use; unique")]
    scopes: list[Scope] = Field(
        default=[Scope.READ],
        min_length=1,
        max_length=2,
        description="`read`: read access, `write`: changes, `metrics`: only `GET /metrics`",
    )
    expires_seconds: int | None = Field(
        default=90 * 24 * 3600,
        ge=1,
        le=10 * YEAR,
        description="Seconds until it expires; null: never. It expires no later than the token that creates it",
    )
