"""Users, their tokens and their sessions."""

from __future__ import annotations

from pydantic import AwareDatetime, Field

from ferret_core.protocol.ids import SessionId, TokenId, TokenText, UserId
from ferret_core.protocol.resources.base import Page, Resource
from ferret_core.protocol.roles import Role, Scope
from ferret_core.protocol.sanitize import Line


class User(Resource):
    """A person with an account."""

    id: UserId
    name: Line
    role: Role
    enabled: bool
    issuer: Line | None = Field(
        description="OpenID Connect provider with which the user signs in; null: a local account"
    )
    created_at: AwareDatetime


class UserPage(Page[User]):
    """Users by name."""


class CurrentUser(Resource):
    """The user who sends the request."""

    id: UserId
    name: Line
    role: Role
    scopes: list[Scope] = Field(description="What the token of the request allows; a session allows `read` and `write`")
    has_password: bool = Field(description="Whether the account has a password, which its user can change")
    projects: list[Line] = Field(description="Names of the projects whose experiments the user sees")


class Token(Resource):
    """A user's token, without its text."""

    id: TokenId
    name: Line
    scopes: list[Scope]
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = Field(description="null: it does not expire")
    used_at: AwareDatetime | None = Field(description="When it was last used, to within a minute; null: never")


class TokenList(Resource):
    """All tokens of a user, by name."""

    items: list[Token]


class CreatedToken(Token):
    """A new token. Its text is shown only this once."""

    token: TokenText = Field(repr=False)


class BrowserSession(Resource):
    """A browser in which the user is signed in, or a sign-in link that nobody has used yet."""

    id: SessionId
    link: bool = Field(description="Whether it is a sign-in link that nobody has used yet")
    current: bool = Field(description="Whether it is the session of this request")
    address: Line | None = Field(description="Network address of the browser, or of whoever made the link")
    token: TokenId | None = Field(description="Id of the token that it was made with, and ends with; null: none")
    created_at: AwareDatetime
    expires_at: AwareDatetime


class BrowserSessionList(Resource):
    """All sessions of a user, newest first."""

    items: list[BrowserSession]
