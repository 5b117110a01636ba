"""Sign-in with a provider as the API takes and shows it."""

from __future__ import annotations

from pydantic import Field, model_validator

from ferret_api.schemas import Command, Resource


class SignInWays(Resource):
    """How people sign in here, beside name and password."""

    provider: str | None = Field(description="What the OpenID Connect provider is called; null: there is none")


class Authorization(Resource):
    """Where the browser goes to sign in."""

    url: str = Field(description="Address at the provider")


class Callback(Command, json_schema_extra={"examples": [{"state": "3q2-7wAAAAA", "code": "4/0AX4XfWh"}]}):
    """What the provider sent the browser back with."""

    state: str = Field(default="", max_length=200)
    code: str | None = Field(default=None, min_length=1, max_length=4000, repr=False)
    error: str | None = Field(default=None, min_length=1, max_length=200)
    error_description: str | None = Field(default=None, max_length=1000)

    @model_validator(mode="after")
    def _one(self) -> Callback:
        if (self.code is None) == (self.error is None):
            raise ValueError("give the code, or the error")
        return self
