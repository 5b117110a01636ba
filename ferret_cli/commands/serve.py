"""``ferret serve``, the whole service; ``api``, ``worker`` and ``migrate``, parts of a larger installation."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ferret_cli import options
from ferret_cli.output import emit, say, show_line
from ferret_cli.requirements_check import require_server
from ferret_core import __version__
from ferret_core.protocol.task_names import Queue


def serve(
    home: options.Home = options.DEFAULT_HOME,
    host: Annotated[str, typer.Option("--host", envvar="FERRET_HOST", help="Address to listen on.")] = "127.0.0.1",
    port: options.Port = options.DEFAULT_PORT,
    roots: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            help="Additional folder from which experiments may read data and models, like the current "
            "one; repeatable. More in FERRET_DATA_ROOTS.",
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
            help=(
                "Number of API processes, which share the port; use more than one for hundreds of requests per second."
            ),
        ),
    ] = 1,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
    json: options.Json = False,
) -> None:
    """Run the whole service on this machine: broker, API, training workers and the aggregation worker.

    Prints one address, which signs one browser in, and stops cleanly on Ctrl-C. With --tls-cert and --tls-key it speaks
    https.
    """
    require_server()
    home = home.expanduser().resolve()
    say(f"starting Ferret {__version__} in {home}; the address follows when it is ready")

    from ferret_cli.stack.stack import Plan, running
    from ferret_core.system.tls_certificate import Certificate

    plan = Plan(
        home,
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
            address = stack.sign_in_address()
            if json:
                emit({"url": address})
            else:
                print(address, flush=True)
            say(f"serving; logs are in {plan.home / 'logs'}; Ctrl-C stops it")
            stack.keep_running()
    except KeyboardInterrupt:
        say("stopped")


def api(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on; default FERRET_HOST.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on; default FERRET_PORT.")] = None,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
) -> None:
    """Run the API alone, as one process of a larger installation."""
    require_server()
    given = {"FERRET_HOST": host, "FERRET_PORT": port, "FERRET_TLS_CERT": tls_cert, "FERRET_TLS_KEY": tls_key}
    for name, value in given.items():
        if value is not None:
            os.environ[name] = str(value)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "ferret_api"])  # noqa: S606 - our own words, no shell


def worker(queue: Annotated[Queue, typer.Argument(help="Kind of work of this process.")]) -> None:
    """Run one worker alone, as one process of a larger installation."""
    require_server()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "ferret_worker", queue.value])  # noqa: S606 - our own words, no shell


def migrate(json: options.Json = False) -> None:
    """Update the database (FERRET_DATABASE_URL) to this version's schema."""
    require_server()

    from ferret_core.system.permissions import restrict_home
    from ferret_db import integrity, migrate, schema_version
    from ferret_runtime.settings import ServiceSettings

    settings = ServiceSettings.read()
    restrict_home(settings.home)
    integrity.require(settings)
    migrate.upgrade(settings.database_url)
    show_line(f"the database is at revision {schema_version.HEAD}", as_json=json)
    if json:
        emit({"revision": schema_version.HEAD})
