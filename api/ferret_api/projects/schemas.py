"""Request bodies for projects."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from ferret_api.schemas import Command
from ferret_core.protocol.resources.projects import ALLOWED_MODELS, AllowedData, AllowedModel
from ferret_core.protocol.sanitize import Line

NAME = r"^[a-z0-9][a-z0-9._-]*$"

ProjectName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64, pattern=NAME),
    Field(description="Unique; small letters, digits, dot, dash and underscore"),
]
Description = Annotated[Line, Field(max_length=500)]


class NewAllowedModel(AllowedModel, extra="forbid"):
    """A model that may be trained. A folder allows the models in it too; a hub name without revision allows all its
    revisions.
    """


Models = Annotated[list[NewAllowedModel] | None, ALLOWED_MODELS]


class NewProject(
    Command,
    json_schema_extra={"examples": [{"name": "cardiology", "description": "Discharge letters of three clinics"}]},
):
    """Request to create a project. It has no members at first: only administrators see it."""

    name: ProjectName
    description: Description = ""
    models: Models = None
    data: AllowedData = None


class ProjectChange(Command, json_schema_extra={"examples": [{"description": "Discharge letters of four clinics"}]}):
    """Request to change a project. Omitted fields stay unchanged."""

    description: Description = ""
    models: Models = None
    data: AllowedData = None
