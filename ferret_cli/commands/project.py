"""``ferret project …``: projects, their members, and the models and data that their experiments may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, show_list, table
from ferret_cli.resolve_experiment import connect
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_core.protocol.resources.projects import Project
    from ferret_sdk.service.projects import Projects

app = typer.Typer(
    help=(
        "Projects: their members, and the models and data they may use. Members have read access; "
        "administrators make changes."
    ),
    no_args_is_help=True,
)

Users = Annotated[list[str], typer.Argument(metavar="USER…", help="Names or ids of users.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", metavar="SOURCE[@REVISION]", help="Hub name, with or without a revision, or a folder on the server."
    ),
]
Data = Annotated[list[str] | None, typer.Option("--data", metavar="PATH", help="File or folder on the server.")]
Entry = TypeVar("Entry")


@app.command("list", epilog="Example: ferret project list")
def list_projects(
    url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """List the projects with experiments that you see."""
    found = [*connect(url, insecure_http).projects]
    rows = [(each.name, f"{each.created_at:%Y-%m-%d}", each.description) for each in found]
    show_list(found, ["name", "since", "about"], rows, json)


@app.command("show", epilog="Example: ferret project show hearts")
def show(
    name: options.ProjectName,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Show a project: its members, and the models and data that its experiments may use."""
    projects = connect(url, insecure_http).projects
    project, members = projects.get(name), projects.members(name)
    if json:
        emit(project.model_dump(mode="json") | {"members": [member.model_dump(mode="json") for member in members]})
        return
    rows = [("name", project.name), ("about", project.description)]
    models = None if project.models is None else [str(model) for model in project.models]
    rows += [("model", line) for line in _allowed(models)]
    rows += [("data", line) for line in _allowed(project.data)]
    rows += [("member", f"{member.name}, {member.role}") for member in members]
    table(["", ""], rows)


def _allowed(entries: Sequence[str] | None) -> Sequence[str]:
    if entries is None:
        return ["all that the server reads"]
    return entries or ["none: ferret project allow adds some"]


@app.command(
    "create", epilog='Example: ferret project create hearts --description "Discharge letters of three hospitals"'
)
def create(
    name: options.ProjectName,
    description: Annotated[str, typer.Option("--description", help="Description of the project.")] = "",
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Create a project."""
    made = connect(url, insecure_http).projects.create(name, description)
    say(f"{made.name} has no members yet: ferret project add-member {made.name} USER")
    if json:
        emit(made)


@app.command("delete", epilog="Example: ferret project delete hearts")
def delete(
    name: options.ProjectName,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Delete a project that has no experiments. Its members stay users."""
    connect(url, insecure_http).projects.delete(name)
    say(f"{name} is deleted")
    if json:
        emit({"name": name, "deleted": True})


@app.command("add-member", epilog="Example: ferret project add-member hearts ada")
def add_member(
    project: options.ProjectName,
    users: Users,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Let users see the project's experiments; their role determines their permissions."""
    service = connect(url, insecure_http)
    for user in [service.people.user(name) for name in users]:
        service.projects.add_member(project, user)
        say(f"{user.name}, a {user.role}, sees {project} now")
    _show_members(service.projects, project, json)


@app.command("remove-member", epilog="Example: ferret project remove-member hearts ada")
def remove_member(
    project: options.ProjectName,
    users: Users,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Remove members from the project, from their next request on."""
    service = connect(url, insecure_http)
    for user in [service.people.user(name) for name in users]:
        service.projects.remove_member(project, user)
        say(f"{user.name} is no longer a member of {project}")
    _show_members(service.projects, project, json)


def _show_members(projects: Projects, project: str, json: bool) -> None:
    if json:
        emit({"name": project, "members": [member.model_dump(mode="json") for member in projects.members(project)]})


@app.command("allow", epilog="Example: ferret project allow hearts --model HuggingFaceTB/SmolLM2-135M-Instruct")
def allow(
    name: options.ProjectName,
    model: Models = None,
    data: Data = None,
    any_model: Annotated[bool, typer.Option("--any-model", help="Every model that the server reads.")] = False,
    any_data: Annotated[bool, typer.Option("--any-data", help="Every file that the server reads.")] = False,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Allow models and data. Once a project allows a model, its experiments use only allowed models; the same applies
    to data.
    """
    from ferret_core.protocol.resources.projects import AllowedModel

    projects = connect(url, insecure_http).projects
    project, changes = projects.get(name), dict[str, object]()
    if any_model or model:
        models = _with(project.models, [AllowedModel.parse(text) for text in model or ()])
        changes["models"] = None if any_model else [each.model_dump() for each in models]
    if any_data or data:
        changes["data"] = None if any_data else _with(project.data, data or ())
    _show_allowed(projects.change(name, **changes), json)


@app.command("disallow", epilog="Example: ferret project disallow hearts --data /data/letters.jsonl")
def disallow(
    name: options.ProjectName,
    model: Models = None,
    data: Data = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Remove models and data from the project's allowed ones. Submitted experiments continue."""
    from ferret_core.protocol.resources.projects import AllowedModel

    projects = connect(url, insecure_http).projects
    project, changes = projects.get(name), dict[str, object]()
    if model:
        models = _without(project.models, [AllowedModel.parse(text) for text in model], "model")
        changes["models"] = [each.model_dump() for each in models]
    if data:
        changes["data"] = _without(project.data, data, "data")
    _show_allowed(projects.change(name, **changes), json)


def _with(entries: Sequence[Entry] | None, more: Sequence[Entry]) -> list[Entry]:
    return list(dict.fromkeys([*(entries or ()), *more]))


def _without(entries: Sequence[Entry] | None, gone: Sequence[Entry], option: str) -> list[Entry]:

    for entry in gone:
        if entry not in (entries or ()):
            reason = "is not among what the project allows; ferret project show lists that"
            raise FerretError.of_field("request.invalid", option, str(entry), reason)
    return [entry for entry in entries or () if entry not in gone]


def _show_allowed(project: Project, json: bool) -> None:

    models = None if project.models is None else [str(model) for model in project.models]
    say(f"{project.name} may use models: {', '.join(_allowed(models))}; data: {', '.join(_allowed(project.data))}")
    if json:
        emit(project)
