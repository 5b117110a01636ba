"""``ferret audit verify``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def verify(
    heads: Annotated[
        list[str] | None,
        typer.Option(
            "--head",
            metavar="NUMBER:HASH",
            help="An end of the log that was noted before, as `ferret audit head` prints it; may be repeated.",
        ),
    ] = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Check on this machine that nothing in the log was changed, removed or moved.

    Who can write to the server's database can write the whole log anew: that shows only against a --head that was kept
    elsewhere. Exit code 1 names the first entry that is wrong.
    """
    from ferret_cli.output import emit, say
    from ferret_core.protocol import audit
    from ferret_sdk.service.service import Service

    kept = [audit.Head.parse(head) for head in heads or ()]
    service = Service(url, insecure_http=insecure_http)
    head = service.audit_head()
    count = audit.verify(service.audit(oldest_first=True), head, kept)
    against = f", and {len(kept)} noted before" if kept else ""
    say(f"{count} entries are as they were written, up to {head}{against}")
    if json:
        emit({"entries": count, "head": str(head), "kept": len(kept)})
