"""``ferret dashboard``, ``whoami`` and ``status``: sign-in to a running server, and its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ferret_cli import options
from ferret_cli.output import emit, table
from ferret_cli.resolve_experiment import connect
from ferret_core.protocol.formatting import size

if TYPE_CHECKING:
    from datetime import datetime

    from ferret_core.protocol.resources.system import System, WorkerStatus


def dashboard(url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False) -> None:
    """Print an address that signs one browser in: it works once, within an hour."""
    link = connect(url, insecure_http).sign_in_link()
    if json:
        emit({"url": link.url, "expires_at": link.expires_at.isoformat()})
    else:
        print(link.url)


def whoami(url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False) -> None:
    """Show your account at the server: name, role, and the token's scopes."""
    service = connect(url, insecure_http)
    me = service.people.me()
    if json:
        emit(me)
    else:
        print(f"{me.name}, {me.role}, at {service.url}; the token's scopes: {' and '.join(me.scopes)}")


def status(url: options.Url = None, insecure_http: options.InsecureHttp = False, json: options.Json = False) -> None:
    """Show the service's state: components, disk, queues and workers. Exit code 1 if a component cannot be used."""
    system = connect(url, insecure_http).system()
    if json:
        emit(system)
    else:
        _show(system)
    if not system.parts.ready:
        raise typer.Exit(1)


def _show(system: System) -> None:

    table(["what", "how it is"], _facts(system))
    print()
    queues = (
        (queue.queue, queue.workers, queue.waiting, _since(queue.oldest, system.time), queue.messages)
        for queue in system.queues
    )
    table(["queue", "workers", "waiting", "oldest waits for", "at the broker"], queues)
    print()
    workers = (
        (worker.queue, worker.host, worker.pid, worker.device, _since(worker.started_at, system.time), _doing(worker))
        for worker in system.workers
        if worker.alive
    )
    table(["worker", "host", "process", "device", "runs for", "works at"], workers)


def _facts(system: System) -> list[tuple[str, str]]:

    parts, database = system.parts, system.database
    kept = f"{database.kind}, {size(database.size)}, revision {database.revision}"
    states = ", ".join(f"{count} {state}" for state, count in system.experiments.items() if count)
    silent = sum(not worker.alive for worker in system.workers)
    return [
        ("version", system.version),
        ("database", parts.database.detail or kept),
        ("storage", parts.storage.detail or f"{system.storage.kind}, {system.storage.place}"),
        ("schema", parts.migrations.detail or "as this version needs it"),
        ("broker", parts.broker.detail or "answers"),
        ("disk", f"{size(system.disk.free)} free of {size(system.disk.total)}"),
        ("experiments", states or "none"),
        ("not yet at the broker", str(system.unsent.waiting)),
        ("tasks given up", str(system.given_up)),
        ("workers gone silent", str(silent)),
    ]


def _since(moment: datetime | None, now: datetime) -> str | None:
    from datetime import timedelta

    return None if moment is None else str(timedelta(seconds=max(0, round((now - moment).total_seconds()))))


def _doing(worker: WorkerStatus) -> str:
    if worker.task is None:
        return "idle"
    return " ".join(part for part in (worker.task.removeprefix("ferret."), worker.experiment or worker.subject) if part)
