"""``ferret experiment edit ID``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def edit(
    id: options.Id,
    name: Annotated[str | None, typer.Option("--name", help="What to call it from now on.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag to add; may be repeated.")] = None,
    untag: Annotated[list[str] | None, typer.Option("--untag", help="A tag to take away; may be repeated.")] = None,
    note: Annotated[
        str | None, typer.Option("--note", help="Notes in Markdown, in place of those there are; empty for none.")
    ] = None,
    priority: options.Priority = None,
    url: options.Url = None,
    insecure_http: options.InsecureHttp = False,
    json: options.Json = False,
) -> None:
    """Change what an experiment is called, its tags, its notes and its priority. What is trained does not change."""
    from ferret_cli.output import emit, say
    from ferret_cli.resolve_experiment import experiment
    from ferret_core.protocol.errors import FerretError
    from ferret_sdk.service.service import Service

    if name is None and note is None and priority is None and not (tag or untag):
        raise FerretError("request.invalid", "give what to change: --name, --tag, --untag, --note or --priority")
    run = experiment(Service(url, insecure_http=insecure_http), id)
    edited = run.edit(name=name, notes=note, priority=priority, tag=tag or (), untag=untag or ()).experiment
    say(f"{edited.id} is called {edited.name}; tags: {', '.join(edited.tags) or 'none'}")
    if json:
        emit(edited)
