"""Projects and members as the API takes and shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from ferret_api.schemas import Command, Page, Resource
from ferret_core.experiment.allowlist import AllowedModel
from ferret_core.protocol.roles import Role
from ferret_core.protocol.sanitize import Line

MOST_ALLOWED = 1000
NAME = r"^[a-z0-9][a-z0-9._-]*$"

ProjectName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64, pattern=NAME),
    Field(description="Unique; small letters, digits, dot, dash and underscore"),
]
Description = Annotated[Line, Field(max_length=500)]
Models = Annotated[
    list[AllowedModel] | None,
    Field(max_length=MOST_ALLOWED, description="Models that its experiments may tune; null: all that the server reads"),
]
Data = Annotated[
    list[Annotated[Line, Field(min_length=1, max_length=4096)]] | None,
    Field(
        max_length=MOST_ALLOWED,
        description="Files and folders that its experiments may train on; null: all that the server reads",
    ),
]


class Project(Resource):
    """Experiments that belong together, and what they may use."""

    name: str
    description: str
    models: Models
    data: Data
    created_at: datetime


class ProjectPage(Page[Project]):
    """Projects by name."""


class NewProject(
    Command,
    json_schema_extra={"examples": [{"name": "cardiology", "description": "Discharge letters of three clinics"}]},
):
    """A project is to be made. It has no members yet: only administrators see it."""

    name: ProjectName
    description: Description = ""
    models: Models = None
    data: Data = None


class ProjectChange(Command, json_schema_extra={"examples": [{"description": "Discharge letters of four clinics"}]}):
    """What is to be different; what is left out stays."""

    description: Description = ""
    models: Models = None
    data: Data = None


class Member(Resource):
    """A user who sees the project."""

    id: str
    name: str
    role: Role = Field(description="What the user may do, in every project alike")


class MemberList(Resource):
    """All members of a project, by name."""

    items: list[Member]
