"""``ferret user password``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.secret_input import CurrentFile, PasswordFile


def password(
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
    """Choose another password for yourself, with the one until now, or give one to a user.

    Whoever is signed in with the one before is signed out; tokens stay good.
    """
    from ferret_cli import secret_input
    from ferret_cli.output import emit, say
    from ferret_core.protocol.errors import FerretError
    from ferret_sdk.service.service import Service

    people = Service(url, insecure_http=insecure_http).people
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
