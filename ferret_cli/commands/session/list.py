"""``ferret session list``"""

from __future__ import annotations

from ferret_cli import options
from ferret_cli.commands.token.of_user import OfUser


def list_sessions(
    of: OfUser = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List signed-in browsers and unused sign-in links, the newest first. Times are in UTC."""
    from ferret_cli.commands.token.of_user import user
    from ferret_cli.output import emit, table
    from ferret_sdk.service.service import Service

    people = Service(url, insecure_http=insecure_http).people
    found = people.sessions(user(people, of))
    if json:
        emit({"items": [session.model_dump(mode="json") for session in found]})
        return
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
    table(["kind", "address", "since", "until", "id"], rows)
