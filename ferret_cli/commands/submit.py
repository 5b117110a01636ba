"""``ferret submit FILE``"""

from __future__ import annotations

from typing import Annotated

import typer

from ferret_cli import options


def submit(
    file: options.SpecFile,
    assignments: options.Assignments = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Idempotency key: the same key and file are the same experiment.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay and show the rounds until the experiment ends.")] = False,
    url: options.Url = None,
    json: options.Json = False,
) -> None:
    """Submit the experiment in FILE.

    ${NAME} in a text of the file stands for an environment variable.
    """
    from ferret_cli import specfile
    from ferret_cli.failure import require_completed
    from ferret_cli.output import emit, say
    from ferret_cli.watch import watch_to_the_end
    from ferret_sdk.service import Service
    from ferret_sdk.transport import is_loopback

    service = Service(url)
    run = service.submit(specfile.load(file, assignments or (), absolute_paths=is_loopback(service.url)), key)
    say(f"{run.id} is {run.state.value}")
    if watch:
        watch_to_the_end(run)
    else:
        say(f"follow it: ferret experiment watch {run.id}")
    if json:
        emit(run.experiment)
    else:
        print(run.id)
    if watch:
        require_completed(run)
