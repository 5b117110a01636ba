"""``ferret audit list``"""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from ferret_cli import options


def list_audit(
    actor: Annotated[
        str | None, typer.Option("--actor", help="Only what this one did: admin, host, nobody, an id.")
    ] = None,
    action: Annotated[str | None, typer.Option("--action", help="Only this action, e.g. experiment.paused.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="Only what was done to this, e.g. exp_….")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many.")] = 50,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List what was done, newest first."""
    from ferret_cli.output import emit, table
    from ferret_sdk.service.service import Service

    found = Service(url, insecure_http=insecure_http).audit(actor=actor, action=action, subject=subject)
    entries = [*islice(found, limit)]
    if json:
        emit({"items": [{**entry._asdict(), "time": entry.time.isoformat()} for entry in entries]})
        return
    rows = [
        (entry.number, f"{entry.time:%Y-%m-%d %H:%M:%S}", entry.actor, entry.action, entry.subject, _told(entry.detail))
        for entry in entries
    ]
    table(["number", "time (UTC)", "who", "what", "to", "more"], rows)


def _told(detail: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in detail.items())
