"""``ferret project add`` and ``delete``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def add(
    name: options.ProjectName,
    description: Annotated[str, typer.Option("--description", help="What it is about.")] = "",
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Make a project."""
    from ferret_cli.output import emit, say
    from ferret_sdk.service.service import Service

    made = Service(url, insecure_http=insecure_http).projects.add(name, description)
    say(f"{made.name} has no members yet: ferret project add-member {made.name} USER")
    if json:
        emit(made)


def delete(name: options.ProjectName, url: options.Url = None, insecure_http: options.InsecureHttp = False) -> None:
    """Delete a project that has no experiments. Its members stay users."""
    from ferret_cli.output import say
    from ferret_sdk.service.service import Service

    Service(url, insecure_http=insecure_http).projects.delete(name)
    say(f"{name} is deleted")
