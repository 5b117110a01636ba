"""``ferret serve``"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options


def serve(
    home: options.Home = options.DEFAULT_HOME,
    host: Annotated[str, typer.Option("--host", envvar="FERRET_HOST", help="Address to listen on.")] = "127.0.0.1",
    port: options.Port = options.DEFAULT_PORT,
    roots: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            help="Folder under which experiments may name data and models, beside the current one; repeatable. "
            "More in FERRET_ROOTS.",
            file_okay=False,
        ),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Number of training workers.")] = 1,
    api_processes: Annotated[
        int,
        typer.Option(
            "--api-processes",
            min=1,
            envvar="FERRET_API_PROCESSES",
            help="Number of API processes, which share the port: more than one for hundreds of requests a second.",
        ),
    ] = 1,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
) -> None:
    """Run the whole service on this machine: broker, API, training workers and the aggregation worker.

    Prints one address, which signs one browser in, and stops cleanly on Ctrl-C. With --tls-cert and --tls-key it speaks
    https.
    """
    from ferret_cli.output import say
    from ferret_cli.requirements_check import require_server

    require_server()

    from ferret_cli.stack.stack import Plan, running
    from ferret_core.system.tls_certificate import Certificate

    plan = Plan(
        home.expanduser().resolve(),
        host,
        port,
        workers,
        api_processes,
        tuple(root.expanduser().resolve() for root in roots or ()),
        Certificate.given(tls_cert, tls_key),
        os.environ.get("FERRET_PUBLIC_URL") or None,
    )
    try:
        with running(plan, say) as stack:
            print(stack.sign_in_address(), flush=True)
            say(f"serving; logs are in {plan.home / 'logs'}; Ctrl-C stops it")
            stack.keep_running()
    except KeyboardInterrupt:
        say("stopped")
