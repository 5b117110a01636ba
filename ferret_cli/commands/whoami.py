"""``ferret whoami``"""

from __future__ import annotations

from ferret_cli import options


def whoami(url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False) -> None:
    """Say as whom the server knows you: name, role, and what the token is good for."""
    from ferret_cli.output import emit
    from ferret_sdk.service.service import Service

    service = Service(url, insecure_http=insecure_http)
    me = service.people.me()
    if json:
        emit(me)
    else:
        print(f"{me.name}, {me.role}, at {service.url}; the token is good for {' and '.join(me.scopes)}")
