"""``ferret project add-member`` and ``remove-member``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options

Users = Annotated[list[str], typer.Argument(metavar="USER…", help="Names or ids of users.")]


def add(
    project: options.ProjectName, users: Users, url: options.Url = None, insecure_http: options.InsecureHttp = False
) -> None:
    """Let users see the project's experiments; what they may do there is their role's."""
    from ferret_cli.output import say
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    for user in [service.people.user(name) for name in users]:
        service.projects.add_member(project, user)
        say(f"{user.name}, a {user.role}, sees {project} now")


def remove(
    project: options.ProjectName, users: Users, url: options.Url = None, insecure_http: options.InsecureHttp = False
) -> None:
    """Let users see the project no more, from their next request on."""
    from ferret_cli.output import say
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    for user in [service.people.user(name) for name in users]:
        service.projects.remove_member(project, user)
        say(f"{user.name} is no member of {project} any more")
