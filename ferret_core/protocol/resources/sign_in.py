"""Browser sign-in."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from ferret_core.protocol.resources.base import Resource


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
