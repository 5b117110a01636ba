"""Endpoints for projects and their members."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field, StringConstraints

from ferret_api.access import Admin, Viewer
from ferret_api.http.errors import problems
from ferret_api.routers.users import UserId
from ferret_api.schemas import PAGE, PREFIX, Command, Cursor, Limit
from ferret_core.protocol.resources.projects import (
    ALLOWED_MODELS,
    AllowedData,
    AllowedModel,
    Member,
    MemberList,
    Project,
    ProjectPage,
)
from ferret_core.protocol.sanitize import Line
from ferret_db.repositories import audit, projects, users

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


router = APIRouter(prefix=f"{PREFIX}/projects", tags=["projects"])

Name = Annotated[str, Path(max_length=64, description="Name of the project")]
NOT_FOUND = problems("project.not_found")
NO_MEMBER = problems("project.not_found", "user.not_found")


@router.get("", operation_id="list_projects")
def list_projects(caller: Viewer, limit: Limit = PAGE, cursor: Cursor = None) -> ProjectPage:
    """Lists the caller's projects; for administrators, all projects. Requires the role viewer."""
    with caller.database.read() as s:
        page = projects.list_page(s, limit, cursor)
        return ProjectPage(items=[Project.model_validate(row) for row in page.items], next_cursor=page.next_cursor)


@router.post("", operation_id="create_project", status_code=201, responses=problems("project.conflict"))
def create_project(wanted: NewProject, caller: Admin) -> Project:
    """Creates a project without members. Requires the role admin."""
    with caller.database.begin() as s:
        row = projects.create(s, **wanted.model_dump())
        audit.record(s, caller.id, "project.created", row.name, **_details(wanted))
        return Project.model_validate(row)


@router.get("/{project}", operation_id="get_project", responses=NOT_FOUND)
def get_project(project: Name, caller: Viewer) -> Project:
    """Returns one project with the models and data that its experiments may use. Requires the role viewer."""
    with caller.database.read() as s:
        return Project.model_validate(projects.get(s, project))


@router.patch("/{project}", operation_id="change_project", responses=NOT_FOUND)
def change_project(project: Name, wanted: ProjectChange, caller: Admin) -> Project:
    """Changes the description, or the allowed models or data. Requires the role admin.

    New limits apply from the next submission. Null allows all models or data again."""
    with caller.database.begin() as s:
        changes = wanted.model_dump(exclude_unset=True)
        row = projects.change(s, project, **changes) if changes else projects.get(s, project)
        if changes:
            audit.record(s, caller.id, "project.changed", project, **_details(wanted))
        return Project.model_validate(row)


@router.delete(
    "/{project}",
    operation_id="delete_project",
    status_code=204,
    responses=problems("project.not_found", "project.conflict"),
)
def delete_project(project: Name, caller: Admin) -> None:
    """Deletes a project that has no experiments. Its members stay users. Requires the role admin."""
    with caller.database.begin() as s:
        projects.delete(s, project)
        audit.record(s, caller.id, "project.deleted", project)


@router.get("/{project}/members", operation_id="list_members", responses=NOT_FOUND)
def list_members(project: Name, caller: Viewer) -> MemberList:
    """Lists the project's members by name. Requires the role viewer.

    Administrators have access to every project without being members."""
    with caller.database.read() as s:
        projects.get(s, project)
        return MemberList(items=[Member.model_validate(user) for user in projects.members(s, project)])


@router.put("/{project}/members/{user_id}", operation_id="add_member", status_code=204, responses=NO_MEMBER)
def add_member(project: Name, user_id: UserId, caller: Admin) -> None:
    """Adds a user to the project, with effect from the user's next request. Requires the role admin.

    Repeating the action succeeds."""
    with caller.database.begin() as s:
        projects.get(s, project)
        name = users.get(s, user_id).name
        if projects.add_member(s, project, user_id):
            audit.record(s, caller.id, "member.added", user_id, project=project, name=name)


@router.delete("/{project}/members/{user_id}", operation_id="remove_member", status_code=204, responses=NO_MEMBER)
def remove_member(project: Name, user_id: UserId, caller: Admin) -> None:
    """Removes a user from the project, with effect from the user's next request. Requires the role admin.

    Repeating the action succeeds."""
    with caller.database.begin() as s:
        projects.get(s, project)
        name = users.get(s, user_id).name
        if projects.remove_member(s, project, user_id):
            audit.record(s, caller.id, "member.removed", user_id, project=project, name=name)


def _details(wanted: NewProject | ProjectChange) -> dict[str, str]:
    return {name: str(value) for name, value in wanted.model_dump(exclude_unset=True, exclude={"name"}).items()}
