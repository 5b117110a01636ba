"""Request bodies for signing in with a browser."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from ferret_api.schemas import Command


class Login(
    Command,
    json_schema_extra={"examples": [{"name": "ada", "password": "the sentence until now"}]},  # nosec B105: an example
):
    """Request to sign in with name and password, or with the admin token."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    password: str | None = Field(default=None, min_length=1, max_length=200, repr=False)
    token: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        repr=False,
        description=("The admin token, or the token of a sign-in link"),
    )

    @field_validator("name")
    @classmethod
    def _small(cls, name: str | None) -> str | None:
        return name and name.lower()

    @model_validator(mode="after")
    def _one_way(self) -> Login:
        if (self.token is None) == (self.name is None) or (self.name is None) != (self.password is None):
            raise ValueError("give name and password, or the token")
        return self
