"""``ferret experiment clone ID``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def clone(
    id: options.Id,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="a.b=VALUE", help="Change a value of the specification, as TOML; repeatable."),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="a.b", help="Take a value back to its default; may be repeated."),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: the same key and changes are the same experiment.")
    ] = None,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Submit an experiment like another one, with changes.

    Another algorithm, dataset or partition starts from its own defaults.
    """
    from ferret_cli import specfile
    from ferret_cli.output import emit, say
    from ferret_sdk.service import Service
    from ferret_sdk.transport import is_loopback

    service = Service(url)
    changes = specfile.assigned(assignments or (), absolute_paths=is_loopback(service.url))
    specfile.merge(changes, specfile.removed(unset or ()))
    run = service.experiment(id).clone(changes, key)
    say(f"{run.id} is {run.state.value}, like {id}; follow it: ferret experiment watch {run.id}")
    if json:
        emit(run.experiment)
    else:
        print(run.id)
