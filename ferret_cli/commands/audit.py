"""``ferret audit …``: the server's log of every change, read and verified."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, show_line, table
from ferret_cli.resolve_experiment import connect

app = typer.Typer(
    help="The server's log of all actions. Later changes to the log can be detected.", no_args_is_help=True
)


@app.command("list", epilog="Example: ferret audit list --action experiment.paused")
def list_audit(
    actor: Annotated[
        str | None, typer.Option("--actor", help="Only actions of this actor: admin, host, nobody, an id.")
    ] = None,
    action: Annotated[str | None, typer.Option("--action", help="Only this action, e.g. experiment.paused.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="Only actions on this target, e.g. exp_….")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many.")] = 50,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """List the actions, newest first."""
    found = connect(url, insecure_http).audit(actor=actor, action=action, subject=subject)
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


@app.command("verify", epilog="Example: ferret audit verify")
def verify(
    heads: Annotated[
        list[str] | None,
        typer.Option(
            "--head",
            metavar="NUMBER:HASH",
            help="A previously noted end of the log, as `ferret audit head` prints it; may be repeated.",
        ),
    ] = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Check on this machine that no entry of the log was changed, removed or moved.

    A person with write access to the server's database can rewrite the whole log: only a --head that was stored
    elsewhere shows that. With exit code 1 the first wrong entry is named.
    """
    from ferret_core.protocol import audit

    kept = [audit.Head.parse(head) for head in heads or ()]
    service = connect(url, insecure_http)
    head = service.audit_head()
    count = audit.verify(service.audit(oldest_first=True), head, kept)
    against = f", and {len(kept)} noted before" if kept else ""
    show_line(f"{count} entries are as they were written, up to {head}{against}", as_json=json)
    if json:
        emit({"entries": count, "head": str(head), "kept": len(kept)})


@app.command("head", epilog="Example: ferret audit head > head.txt")
def head(url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False) -> None:
    """Print the end of the log, as NUMBER:HASH, to store on another machine for `ferret audit verify --head`."""
    found = connect(url, insecure_http).audit_head()
    if json:
        emit({"number": found.number, "hash": found.hash})
    else:
        print(found)
