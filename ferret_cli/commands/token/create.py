"""``ferret token create``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.commands.token.of_user import OfUser
from ferret_core.protocol.roles import Scope

DAY = 24 * 3600


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Says where the token is used.")],
    write: Annotated[
        bool, typer.Option("--write", help="Good for changes too, within the user's role; default: for reading only.")
    ] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="Good for reading /metrics only.")] = False,
    days: Annotated[int, typer.Option("--days", min=0, max=3660, help="Days until it expires; 0: never.")] = 90,
    of: OfUser = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Make a token and print it on stdout. It is shown only this once, and ends with the token that makes it."""
    from ferret_cli.commands.token.of_user import user
    from ferret_cli.output import emit, say
    from ferret_sdk.service.service import Service

    people = Service(url, insecure_http=insecure_http).people
    if write and metrics:
        raise typer.BadParameter("give one of the two", param_hint="--write and --metrics")
    scopes = [Scope.METRICS] if metrics else [Scope.READ, Scope.WRITE] if write else [Scope.READ]
    made = people.create_token(name, scopes, days * DAY or None, user(people, of))
    until = f"until {made.expires_at:%Y-%m-%d %H:%M} UTC" if made.expires_at else "until it is revoked"
    say(f"good for {' and '.join(scopes)} {until}; keep it in a file and name that in FERRET_TOKEN_FILE")
    if json:
        emit(made)
    else:
        print(made.token)
