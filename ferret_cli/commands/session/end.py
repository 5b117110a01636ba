"""``ferret session end``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.commands.token.of_user import OfUser


def end(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the session, as `ferret session list` prints it.")],
    of: OfUser = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Sign a browser out, or make a sign-in link useless, from the next request on."""
    from ferret_cli.commands.token.of_user import user
    from ferret_cli.output import emit, say
    from ferret_sdk.service.service import Service

    people = Service(url, insecure_http=insecure_http).people
    people.end_session(id, user(people, of))
    say(f"{id} has ended")
    if json:
        emit({"id": id})
