"""Projects, their members, and the models and data that their experiments may use."""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, Field

from ferret_core.protocol.ids import UserId
from ferret_core.protocol.limits import Revision, Source
from ferret_core.protocol.resources.base import Page, Resource
from ferret_core.protocol.roles import Role
from ferret_core.protocol.sanitize import Line

MOST_ALLOWED = 1000

AllowedData = Annotated[
    list[Annotated[Line, Field(min_length=1, max_length=4096)]] | None,
    Field(
        max_length=MOST_ALLOWED,
        description="Files and folders that its experiments may train on; null: all that the server reads",
    ),
]
ALLOWED_MODELS = Field(
    max_length=MOST_ALLOWED, description="Models that its experiments may train; null: all that the server reads"
)


class AllowedModel(Resource):
    """A model that may be trained. A folder allows the models in it too; a hub name without revision allows all its
    revisions.
    """

    source: Source = Field(description="Hub name, or a folder on the server")
    revision: Revision | None = Field(default=None, description="Commit or tag of a hub name; null: any")

    @classmethod
    def parse(cls, text: str) -> AllowedModel:
        """Reads ``SOURCE`` or ``SOURCE@REVISION``, the format of ``str``."""
        source, _, revision = text.partition("@")
        return cls(source=source, revision=revision or None)

    def __str__(self) -> str:
        return f"{self.source}@{self.revision}" if self.revision else self.source


class Project(Resource):
    """A group of experiments, and the models and data that they may use."""

    name: Line
    description: Line
    models: Annotated[list[AllowedModel] | None, ALLOWED_MODELS]
    data: AllowedData
    created_at: AwareDatetime


class ProjectPage(Page[Project]):
    """Projects by name."""


class Member(Resource):
    """A user who sees the project."""

    id: UserId
    name: Line
    role: Role = Field(description="The user's permissions, the same in every project")


class MemberList(Resource):
    """All members of a project, by name."""

    items: list[Member]
