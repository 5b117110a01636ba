"""Users, their tokens and their sessions."""

from __future__ import annotations

from typing import Annotated

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
    issuer: Line | None = Field(description="OpenID Connect provider of the user; null: a local account")
    created_at: AwareDatetime


class UserPage(Page[User]):
    """Users by name."""


class CurrentUser(Resource):
    """The user who sends the request."""

    id: UserId
    name: Line
    role: Role
    scopes: list[Scope] = Field(description="Scopes of the request's token; a session has `read` and `write`")
    has_password: bool = Field(description="true: the account has a password, which its user can change")
    projects: list[Line] = Field(description="Names of the projects with experiments that the user sees")


class Token(Resource):
    """A user's token, without its text."""

    id: TokenId
    name: Line
    scopes: list[Scope]
    created_at: AwareDatetime
    expires_at: AwareDatetime | None = Field(description="Expiry; null: it does not expire")
    used_at: AwareDatetime | None = Field(description="Time of its last use, to within a minute; null: never used")


class TokenList(Resource):
    """All tokens of a user, by name."""

    items: list[Token]


class CreatedToken(Token):
    """A new token. Its text is shown only once."""

    token: TokenText = Field(repr=False)


class BrowserSession(Resource):
    """A browser in which the user is signed in, or an unused sign-in link."""

    id: SessionId
    link: bool = Field(description="true for an unused sign-in link")
    current: bool = Field(description="true for the session of this request")
    address: Line | None = Field(description="Network address of the browser, or of the link's creator")
    token: TokenId | None = Field(
        description=("Id of the token that created it; the session ends with that token; null without a token")
    )
    created_at: AwareDatetime
    expires_at: AwareDatetime


class BrowserSessionList(Resource):
    """All sessions of a user, newest first."""

    items: list[BrowserSession]


class SignInMethods(Resource):
    """Sign-in methods in addition to name and password."""

    provider: str | None = Field(description="Name of the OpenID Connect provider; null without a provider")


class Authorization(Resource):
    """Address for signing in with the provider."""

    url: str = Field(description="Address at the provider")


class SignInLink(Resource):
    """A sign-in link for one browser. It works once, so the copy in the browser's history is useless."""

    url: Annotated[str, Field(pattern=r"^https?://[^\s]{1,2000}$")] = Field(
        description="Address to open in a browser; the dashboard removes the token from the address bar"
    )
    token: str
    expires_at: AwareDatetime
