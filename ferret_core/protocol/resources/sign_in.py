"""How a browser signs in."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from ferret_core.protocol.resources.base import Resource


class SignInMethods(Resource):
    """How people can sign in, besides name and password."""

    provider: str | None = Field(description="Name of the OpenID Connect provider; null: there is none")


class Authorization(Resource):
    """Where the browser goes to sign in."""

    url: str = Field(description="Address at the provider")


class SignInLink(Resource):
    """Signs one browser in, once. The copy in the browser's history is useless afterwards."""

    url: Annotated[str, Field(pattern=r"^https?://[^\s]{1,2000}$")] = Field(
        description="Address to open in a browser; the dashboard removes the token from the address bar"
    )
    token: str
    expires_at: AwareDatetime
