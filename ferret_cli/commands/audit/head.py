"""``ferret audit head``"""

from __future__ import annotations

from ferret_cli import options


def head(url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False) -> None:
    """Print where the log ends, as NUMBER:HASH, to keep on another machine for `ferret audit verify --head`."""
    from ferret_cli.output import emit
    from ferret_sdk.service.service import Service

    found = Service(url, insecure_http=insecure_http).audit_head()
    if json:
        emit({"number": found.number, "hash": found.hash})
    else:
        print(found)
