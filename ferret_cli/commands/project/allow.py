"""``ferret project allow`` and ``disallow``"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ferret_cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ferret_core.protocol.resources.projects import Project

Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", metavar="SOURCE[@REVISION]", help="Hub name, with or without a revision, or a folder on the server."
    ),
]
Data = Annotated[list[str] | None, typer.Option("--data", metavar="PATH", help="File or folder on the server.")]
Entry = TypeVar("Entry")


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
    """Say what the project's experiments may use: from the first model on those alone, and the same with data."""
    from ferret_core.protocol.resources.projects import AllowedModel
    from ferret_sdk.service.service import Service

    projects = Service(url, insecure_http=insecure_http).projects
    project, changes = projects.get(name), dict[str, object]()
    if any_model or model:
        models = _with(project.models, [AllowedModel.parse(text) for text in model or ()])
        changes["models"] = None if any_model else [each.model_dump() for each in models]
    if any_data or data:
        changes["data"] = None if any_data else _with(project.data, data or ())
    _show(projects.change(name, **changes), json)


def disallow(
    name: options.ProjectName,
    model: Models = None,
    data: Data = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Take models and data from what the project's experiments may use. Those that were submitted go on."""
    from ferret_core.protocol.resources.projects import AllowedModel
    from ferret_sdk.service.service import Service

    projects = Service(url, insecure_http=insecure_http).projects
    project, changes = projects.get(name), dict[str, object]()
    if model:
        models = _without(project.models, [AllowedModel.parse(text) for text in model], "model")
        changes["models"] = [each.model_dump() for each in models]
    if data:
        changes["data"] = _without(project.data, data, "data")
    _show(projects.change(name, **changes), json)


def _with(entries: Sequence[Entry] | None, more: Sequence[Entry]) -> list[Entry]:
    return list(dict.fromkeys([*(entries or ()), *more]))


def _without(entries: Sequence[Entry] | None, gone: Sequence[Entry], option: str) -> list[Entry]:
    from ferret_core.protocol.errors import FerretError

    for entry in gone:
        if entry not in (entries or ()):
            reason = "is not among what the project allows; ferret project show lists that"
            raise FerretError.of_field("request.invalid", option, str(entry), reason)
    return [entry for entry in entries or () if entry not in gone]


def _show(project: Project, json: bool) -> None:
    from ferret_cli.commands.project.show import allowed
    from ferret_cli.output import emit, say

    models = None if project.models is None else [str(model) for model in project.models]
    say(f"{project.name} may use models: {', '.join(allowed(models))}; data: {', '.join(allowed(project.data))}")
    if json:
        emit(project)
