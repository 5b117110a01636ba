"""``ferret session …``: signed-in browsers."""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.commands.token import OfUser, user_named
from ferret_cli.output import emit, say, show_list
from ferret_cli.resolve_experiment import connect

app = typer.Typer(help="Signed-in browsers: your own, or another user's with --user.", no_args_is_help=True)


@app.command("list", epilog="Example: ferret session list")
def list_sessions(
    of: OfUser = None, url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """List signed-in browsers and unused sign-in links, the newest first. Times are in UTC."""
    people = connect(url, insecure_http).people
    found = people.sessions(user_named(people, of))
    rows = [
        (
            "link" if session.link else "browser",
            session.address or "",
            f"{session.created_at:%Y-%m-%d %H:%M}",
            f"{session.expires_at:%Y-%m-%d %H:%M}",
            session.id,
        )
        for session in found
    ]
    show_list(found, ["kind", "address", "since", "until", "id"], rows, json)


@app.command("revoke", epilog="Example: ferret session revoke ses_0123456789abcdef")
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the session, as `ferret session list` prints it.")],
    of: OfUser = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Sign a browser out, or revoke a sign-in link, from the next request on."""
    people = connect(url, insecure_http).people
    people.revoke_session(id, user_named(people, of))
    say(f"{id} is revoked")
    if json:
        emit({"id": id, "revoked": True})
