"""What the service says of itself."""

from __future__ import annotations

from pydantic import Field

from api.schemas import Command, Resource


class Formats(Resource):
    """Versions of what crosses the wire."""

    wire: int
    projection: int


class Info(Resource):
    """Which service this is and what it stands on."""

    name: str
    version: str
    instance: str = Field(description="Distinguishes installations; changes with the admin token")
    database: str = Field(description="`sqlite` or `postgresql`")
    storage: str = Field(description="Scheme of the storage URL, e.g. `file`")
    formats: Formats


class Login(Command):
    """Signs a browser in."""

    token: str = Field(min_length=1, max_length=500)


class Health(Resource):
    """The process answers."""

    status: str


class PartStatus(Resource):
    """Whether one part can be used; ``detail`` says what is wrong and what to do."""

    ready: bool
    detail: str | None


class Readiness(Resource):
    """Whether the service can do its work, and which part keeps it from it."""

    ready: bool
    database: PartStatus
    migrations: PartStatus
    broker: PartStatus
