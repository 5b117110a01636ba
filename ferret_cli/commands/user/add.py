"""``ferret user add``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.secret_input import PasswordFile
from ferret_core.protocol.roles import Role


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Unique; letters, digits and . _ @ + -")],
    role: Annotated[Role, typer.Option("--role", help="What the user may do.")] = Role.VIEWER,
    projects: Annotated[
        list[str] | None, typer.Option("--project", help="Project whose experiments the user sees; may be repeated.")
    ] = None,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="The user cannot sign in at the dashboard, and has tokens only.")
    ] = False,
    password_file: PasswordFile = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Make an account."""
    from ferret_cli.output import emit, say
    from ferret_cli.secret_input import password
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    seen = [service.projects.get(project).name for project in projects or ()]
    made = service.people.add(name, role, None if no_password else password(password_file))
    for project in seen:
        service.projects.add_member(project, made)
    say(f"{made.name} is a {made.role}; a token for programs: ferret token create NAME --user {made.name}")
    if made.role != Role.ADMIN and not seen:
        say(f"{made.name} sees no experiment yet: ferret project add-member default {made.name}")
    if json:
        emit(made)
