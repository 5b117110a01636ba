"""``ferret dashboard``"""

from __future__ import annotations

from ferret_cli import options


def dashboard(url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False) -> None:
    """Print an address that signs one browser in: it works once, within an hour."""
    from ferret_cli.output import emit
    from ferret_sdk.service.service import Service

    link = Service(url, insecure_http=insecure_http).sign_in_link()
    if json:
        emit({"url": link.url, "expires_at": link.expires_at.isoformat()})
    else:
        print(link.url)
