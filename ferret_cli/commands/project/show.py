"""``ferret project show NAME``"""

from __future__ import annotations

from collections.abc import Sequence

from ferret_cli import options


def show(
    name: options.ProjectName,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Show a project: its members, and the models and data that its experiments may use."""
    from ferret_cli.output import emit, table
    from ferret_sdk.service.service import Service

    projects = Service(url, insecure_http=insecure_http).projects
    project, members = projects.get(name), projects.members(name)
    if json:
        emit(project.model_dump(mode="json") | {"members": [member.model_dump(mode="json") for member in members]})
        return
    rows = [("name", project.name), ("about", project.description)]
    models = None if project.models is None else [str(model) for model in project.models]
    rows += [("model", line) for line in allowed(models)]
    rows += [("data", line) for line in allowed(project.data)]
    rows += [("member", f"{member.name}, {member.role}") for member in members]
    table(["", ""], rows)


def allowed(entries: Sequence[str] | None) -> Sequence[str]:
    """The entries as people read them."""
    if entries is None:
        return ["all that the server reads"]
    return entries or ["none: ferret project allow adds some"]
