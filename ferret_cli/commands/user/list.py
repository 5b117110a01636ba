"""``ferret user list``"""

from __future__ import annotations

from ferret_cli import options


def list_users(
    url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False
) -> None:
    """List everybody who has an account."""
    from ferret_cli.output import emit, table
    from ferret_sdk.service.service import Service

    found = [*Service(url, insecure_http=insecure_http).people.users()]
    if json:
        emit({"items": [user.model_dump(mode="json") for user in found]})
        return
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
    table(["name", "role", "", "signs in at", "since", "id"], rows)
