"""Request bodies of the sign-in with a provider."""

from __future__ import annotations

from pydantic import Field, model_validator

from ferret_api.schemas import Command


class Callback(Command, json_schema_extra={"examples": [{"state": "3q2-7wAAAAA", "code": "4/0AX4XfWh"}]}):
    """Parameters of the provider's redirect."""

    state: str = Field(default="", max_length=200)
    code: str | None = Field(default=None, min_length=1, max_length=4000, repr=False)
    error: str | None = Field(default=None, min_length=1, max_length=200)
    error_description: str | None = Field(default=None, max_length=1000)

    @model_validator(mode="after")
    def _one(self) -> Callback:
        if (self.code is None) == (self.error is None):
            raise ValueError("give the code, or the error")
        return self
