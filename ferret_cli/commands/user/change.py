"""``ferret user role``, ``disable`` and ``enable``"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ferret_cli import options
from ferret_core.protocol.roles import Role

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the user.")]


def role(
    name: Name,
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="viewer, researcher or admin.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Give a user another role, from the next request on."""
    _change(name, f"is a {role} now", url, insecure_http, json, role=role.value)


def disable(
    name: Name, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Shut a user out at once, tokens too, until it is enabled again."""
    _change(
        name, "is disabled: its tokens are refused and its sessions have ended", url, insecure_http, json, enabled=False
    )


def enable(
    name: Name, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Let a user in again. Its tokens are good again, those that have not expired."""
    _change(name, "is enabled", url, insecure_http, json, enabled=True)


def _change(name: str, said: str, url: str | None, insecure_http: bool, json: bool, **values: Any) -> None:
    from ferret_cli.output import emit, say
    from ferret_sdk.service.service import Service

    people = Service(url, insecure_http=insecure_http).people
    changed = people.change(people.user(name), **values)
    say(f"{changed.name} {said}")
    if json:
        emit(changed)
