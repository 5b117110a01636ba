"""``ferret user …``: the accounts at the server."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, show_list
from ferret_cli.resolve_experiment import connect
from ferret_cli.secret_input import CurrentFile, PasswordFile
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import Role

app = typer.Typer(
    help="Accounts at the server and their roles. Only administrators can change more than their own password.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the user.")]


@app.command("create", epilog="Example: ferret user create ada --role researcher --project default")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Unique; letters, digits and . _ @ + -")],
    role: Annotated[Role, typer.Option("--role", help="Role, which determines the user's permissions.")] = Role.VIEWER,
    projects: Annotated[
        list[str] | None,
        typer.Option("--project", help=("Project with experiments that the user sees; may be repeated.")),
    ] = None,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="The user cannot sign in at the dashboard, and has tokens only.")
    ] = False,
    password_file: PasswordFile = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Create an account."""
    from ferret_cli import secret_input

    service = connect(url, insecure_http)
    seen = [service.projects.get(project).name for project in projects or ()]
    made = service.people.create(name, role, None if no_password else secret_input.password(password_file))
    for project in seen:
        service.projects.add_member(project, made)
    say(f"{made.name} has the role {made.role}; a token for programs: ferret token create NAME --user {made.name}")
    if made.role != Role.ADMIN and not seen:
        say(f"{made.name} sees no experiment yet: ferret project add-member default {made.name}")
    if json:
        emit(made)


@app.command("list", epilog="Example: ferret user list")
def list_users(
    url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """List all accounts."""
    found = [*connect(url, insecure_http).people.users()]
    rows = [
        (
            user.name,
            user.role,
            "" if user.enabled else "disabled",
            user.issuer or "here",
            f"{user.created_at:%Y-%m-%d}",
            user.id,
        )
        for user in found
    ]
    show_list(found, ["name", "role", "", "signs in at", "since", "id"], rows, json)


@app.command("edit", epilog="Example: ferret user edit ada --role admin")
def edit(
    name: Name,
    role: Annotated[Role, typer.Option("--role", help="Another role, from the next request on.")],
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Change a user's role."""
    _change(name, f"has the role {role} now", url, insecure_http, json, role=role.value)


@app.command("set-password", epilog="Example: ferret user set-password ada")
def set_password(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Name or id of a user, for administrators; without it: yourself."),
    ] = None,
    current_file: CurrentFile = None,
    password_file: PasswordFile = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Change your password, or as an administrator set a user's.

    All browsers that are signed in with the old password are signed out; tokens stay valid.
    """
    from ferret_cli import secret_input

    people = connect(url, insecure_http).people
    if name is None:
        people.change_password(secret_input.current(current_file), secret_input.password(password_file))
        changed = people.me()
    elif current_file is not None:
        raise FerretError("request.invalid", "--current-file is for your own password: leave NAME out")
    else:
        changed = people.change(people.user(name), password=secret_input.password(password_file))
    say(f"{changed.name} has another password, and is signed out everywhere")
    if json:
        emit(changed)


@app.command("disable", epilog="Example: ferret user disable ada")
def disable(
    name: Name, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Disable a user at once, with its tokens, until it is enabled again."""
    _change(
        name, "is disabled: its tokens are refused and its sessions have ended", url, insecure_http, json, enabled=False
    )


@app.command("enable", epilog="Example: ferret user enable ada")
def enable(
    name: Name, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """Enable a user again, with its unexpired tokens."""
    _change(name, "is enabled", url, insecure_http, json, enabled=True)


def _change(name: str, said: str, url: str | None, insecure_http: bool, json: bool, **values: Any) -> None:

    people = connect(url, insecure_http).people
    changed = people.change(people.user(name), **values)
    say(f"{changed.name} {said}")
    if json:
        emit(changed)
