"""``ferret token revoke``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.commands.token.of_user import OfUser


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the token.")],
    of: OfUser = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Make a token useless, from the next request on, with all tokens and sessions that were made with it."""
    from ferret_cli.commands.token.of_user import user
    from ferret_cli.output import emit, say
    from ferret_sdk.service.service import Service

    people = Service(url, insecure_http=insecure_http).people
    gone = people.revoke_token(name, user(people, of))
    say(f"{gone.name} is revoked")
    if json:
        emit(gone)
