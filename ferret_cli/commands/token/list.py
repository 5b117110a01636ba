"""``ferret token list``"""

from __future__ import annotations

from datetime import datetime

from ferret_cli import options
from ferret_cli.commands.token.of_user import OfUser


def list_tokens(
    of: OfUser = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List tokens: what each is good for, until when, and when it was last used. Times are in UTC."""
    from ferret_cli.commands.token.of_user import user
    from ferret_cli.output import emit, table
    from ferret_sdk.service.service import Service

    people = Service(url, insecure_http=insecure_http).people
    found = people.tokens(user(people, of))
    if json:
        emit({"items": [token.model_dump(mode="json") for token in found]})
        return
    rows = [
        (token.name, " ".join(token.scopes), _time(token.expires_at, "never"), _time(token.used_at, "never"), token.id)
        for token in found
    ]
    table(["name", "scopes", "expires", "last used", "id"], rows)


def _time(time: datetime | None, otherwise: str) -> str:
    return f"{time:%Y-%m-%d %H:%M}" if time else otherwise
