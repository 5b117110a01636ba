"""Users and tokens as the API takes and shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from ferret_api.schemas import Command, Page, Resource
from ferret_core.protocol.roles import Role, Scope
from ferret_core.protocol.sanitize import Line

YEAR = 366 * 24 * 3600

UserName = Annotated[
    str,
    StringConstraints(to_lower=True, min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$"),
    Field(description="Unique; letters, which become small ones, digits, and `.` `_` `@` `+` `-`"),
]
Password = Annotated[str, Field(min_length=12, max_length=200, description="At least 12 characters")]


class User(Resource):
    """Somebody who signs in."""

    id: str
    name: str
    role: Role
    enabled: bool
    issuer: str | None = Field(
        description="OpenID Connect provider with which the user signs in; null: a local account"
    )
    created_at: datetime


class UserPage(Page[User]):
    """Users by name."""


class NewUser(Command, json_schema_extra={"examples": [{"name": "ada", "role": "researcher"}]}):
    """Somebody is to have an account. Without a password the user has tokens only."""

    name: UserName
    role: Role
    password: Password | None = Field(default=None, repr=False)


class UserChange(Command, json_schema_extra={"examples": [{"enabled": False}]}):
    """What is to be different; another password, and disabling, sign the user out everywhere."""

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
    """The user's own password is to be another one."""

    current: str = Field(max_length=200, repr=False)
    password: Password = Field(repr=False)


class Me(Resource):
    """Who is signed in."""

    id: str
    name: str
    role: Role
    scopes: list[Scope] = Field(description="What the token that was shown is good for; of a session both")
    has_password: bool = Field(description="Whether the account has a password, which its user can change")
    projects: list[str] = Field(description="Names of the projects whose experiments it sees")


class NewToken(
    Command,
    json_schema_extra={"examples": [{"name": "notebook", "scopes": ["read", "write"], "expires_seconds": 2592000}]},
):
    """A token is to be made."""

    name: Annotated[Line, Field(min_length=1, max_length=100, description="Says where it is used; unique")]
    scopes: list[Scope] = Field(
        default=[Scope.READ],
        min_length=1,
        max_length=2,
        description="`read` to look, `write` to change something, `metrics` for `GET /metrics` only",
    )
    expires_seconds: int | None = Field(
        default=90 * 24 * 3600,
        ge=1,
        le=10 * YEAR,
        description="Seconds until it expires; null: never. It expires no later than the token that makes it",
    )


class Token(Resource):
    """A user's token, without its text."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None = Field(description="When it was last used, within a minute; null: never")


class TokenList(Resource):
    """All tokens of a user, by name."""

    items: list[Token]


class CreatedToken(Token):
    """A new token. Its text is shown only once."""

    token: str = Field(repr=False)


class BrowserSession(Resource):
    """A browser in which the user is signed in, or a sign-in link that nobody has used yet."""

    id: str
    link: bool = Field(description="A sign-in link that nobody has used yet")
    current: bool = Field(description="The session of this request")
    address: str | None = Field(description="Network address of the browser, or of the maker of the link")
    token: str | None = Field(description="Id of the token that it was made with, and ends with; null: none")
    created_at: datetime
    expires_at: datetime


class BrowserSessionList(Resource):
    """All sessions of a user, the newest first."""

    items: list[BrowserSession]
