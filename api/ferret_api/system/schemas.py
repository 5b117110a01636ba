"""What the service says about itself."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field, field_validator, model_validator

from ferret_api.schemas import Command, Resource


class Formats(Resource):
    """Versions of the wire formats."""

    wire: int
    projection: int


class Info(Resource):
    """Name, version and backends of this service."""

    name: str
    version: str
    instance: str = Field(description="Identifies the installation; changes with the admin token")
    database: str = Field(description="`sqlite` or `postgresql`")
    storage: str = Field(description="Scheme of the storage URL, e.g. `file`")
    formats: Formats


class Login(Command, json_schema_extra={"examples": [{"name": "ada", "password": "the sentence until now"}]}):
    """Signs a browser in: with name and password, or with the admin token."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    password: str | None = Field(default=None, min_length=1, max_length=200, repr=False)
    token: str | None = Field(
        default=None, min_length=1, max_length=500, repr=False, description="The admin token, or that of a sign-in link"
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


class SignInLink(Resource):
    """Signs one browser in, once: what browsers keep in their history opens nothing any more."""

    url: str = Field(description="To be opened in a browser; the dashboard takes the token out of the address")
    token: str
    expires_at: datetime


class Health(Resource):
    """The process is alive."""

    status: str


class PartStatus(Resource):
    """Whether one part can be used; ``detail`` says what is wrong and what to do."""

    ready: bool
    detail: str | None


class Readiness(Resource):
    """Whether the service is ready, and the state of each part."""

    ready: bool
    database: PartStatus
    migrations: PartStatus
    broker: PartStatus
