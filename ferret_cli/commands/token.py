"""``ferret token …``: access tokens for programs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, show_list
from ferret_cli.resolve_experiment import connect
from ferret_core.protocol.roles import Scope

if TYPE_CHECKING:
    from ferret_core.protocol.resources.users import User
    from ferret_sdk.service.users import Users

app = typer.Typer(help="Tokens for programs: your own, or another user's with --user.", no_args_is_help=True)

DAY_SECONDS = 24 * 3600

OfUser = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="Another user, as an administrator; default: yourself.")
]


@app.command("create", epilog="Example: ferret token create notebook --write > token")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Label for the token's place of use.")],
    write: Annotated[
        bool, typer.Option("--write", help="Also allows changes, within the user's role; default: read only.")
    ] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="Allows only reading /metrics.")] = False,
    days: Annotated[int, typer.Option("--days", min=0, max=3660, help="Days until it expires; 0: never.")] = 90,
    of: OfUser = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Create a token and print it on stdout. It is shown only once, and ends with the token that creates it."""
    people = connect(url, insecure_http).people
    if write and metrics:
        raise typer.BadParameter("give one of the two", param_hint="--write and --metrics")
    scopes = [Scope.METRICS] if metrics else [Scope.READ, Scope.WRITE] if write else [Scope.READ]
    made = people.create_token(name, scopes, days * DAY_SECONDS or None, user_named(people, of))
    until = f"until {made.expires_at:%Y-%m-%d %H:%M} UTC" if made.expires_at else "until it is revoked"
    say(f"good for {' and '.join(scopes)} {until}; keep it in a file and name that in FERRET_TOKEN_FILE")
    if json:
        emit(made)
    else:
        print(made.token)


@app.command("list", epilog="Example: ferret token list")
def list_tokens(
    of: OfUser = None, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """List tokens: scopes, expiry and last use of each. Times are in UTC."""
    people = connect(url, insecure_http).people
    found = people.tokens(user_named(people, of))
    rows = [
        (token.name, " ".join(token.scopes), _time(token.expires_at, "never"), _time(token.used_at, "never"), token.id)
        for token in found
    ]
    show_list(found, ["name", "scopes", "expires", "last used", "id"], rows, json)


def _time(time: datetime | None, otherwise: str) -> str:
    return f"{time:%Y-%m-%d %H:%M}" if time else otherwise


@app.command("revoke", epilog="Example: ferret token revoke notebook")
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the token.")],
    of: OfUser = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Revoke a token, from the next request on, with all tokens and sessions that it created."""
    people = connect(url, insecure_http).people
    gone = people.revoke_token(name, user_named(people, of))
    say(f"{gone.name} is revoked")
    if json:
        emit(gone)


def user_named(people: Users, name: str | None) -> User | None:
    """Returns the user of this name; None for the caller."""
    return None if name is None else people.user(name)
