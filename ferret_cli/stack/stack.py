"""The whole service on one machine: what ``ferret serve`` and ``ferret demo`` start and stop."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from urllib.parse import quote

from ferret_cli.stack import broker, ports
from ferret_cli.stack.child import Child
from ferret_cli.stack.home import admin_token, announced, locked
from ferret_cli.stack.readiness import wait_until_ready
from ferret_cli.stack.supervisor import Supervisor

WATCH_SECONDS = 0.2


@dataclass(frozen=True)
class Plan:
    """Where a stack keeps its state, where it listens, and how many training workers it has."""

    home: Path
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1

    @property
    def reachable_host(self) -> str:
        """An address under which this machine reaches the API: listening everywhere is no address."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - compared, not bound

    @property
    def url(self) -> str:
        host = f"[{self.reachable_host}]" if ":" in self.reachable_host else self.reachable_host
        return f"http://{host}:{self.port}"


@dataclass(frozen=True)
class Stack:
    """A running stack: its address, its token and the supervisor of its processes."""

    plan: Plan
    token: str
    supervisor: Supervisor

    @property
    def address(self) -> str:
        """The one address a person needs; the token stands in the fragment, which browsers never send."""
        return f"{self.plan.url}/#token={quote(self.token, safe='')}"

    def keep_running(self) -> None:
        """Restarts what crashes until a signal raises KeyboardInterrupt."""
        while True:
            self.supervisor.restart_crashed()
            time.sleep(WATCH_SECONDS)


@contextmanager
def running(plan: Plan, say: Callable[[str], None]) -> Generator[Stack]:
    """Starts everything and waits until it is ready; at the end of the block everything is stopped again.

    Raises ``home.in_use`` or ``port.in_use`` before anything is started or changed.
    """
    _listen_for_signals()
    with locked(plan.home):
        ports.require_free(plan.host, plan.port)
        _migrate(plan)
        supervisor = Supervisor(say)
        try:
            for child in _children(plan):
                supervisor.start(child)
            wait_until_ready(plan.reachable_host, plan.port, supervisor.require_running)
            with announced(plan.home, plan.url):
                yield Stack(plan, admin_token(plan.home), supervisor)
        finally:
            say("stopping")
            supervisor.stop()


def _migrate(plan: Plan) -> None:
    from ferret_db import migrate
    from ferret_db.settings import ServiceSettings

    migrate.upgrade(ServiceSettings.read(home=plan.home).database_url)


def _children(plan: Plan) -> list[Child]:
    """Broker (unless one is configured), API, training workers, aggregation worker: the order of starting."""
    environment = {
        "FERRET_HOME": str(plan.home),
        "FERRET_HOST": plan.host,
        "FERRET_PORT": str(plan.port),
        "FERRET_THREADS": os.environ.get("FERRET_THREADS") or str(_threads(plan.workers)),
        "PYTHONUNBUFFERED": "1",
    }
    children: list[Child] = []
    if not broker.is_configured():
        own = broker.prepare(plan.home)
        environment["FERRET_BROKER_URL"] = own.url
        children.append(own.child)
    train = {"train" if number == 1 else f"train-{number}": "train" for number in range(1, plan.workers + 1)}
    children.append(_python(plan, "api", ["ferret_api"], environment, layer=1))
    for name, queue in {**train, "aggregate": "aggregate"}.items():
        children.append(_python(plan, name, ["ferret_worker", queue], environment, layer=2))
    return children


def _python(plan: Plan, name: str, module: list[str], environment: dict[str, str], layer: int) -> Child:
    # -P: no folder of the working directory is imported.
    command = [sys.executable, "-P", "-m", *module]
    return Child(name, command, plan.home / "logs" / f"{name}.log", environment, layer)


def _threads(workers: int) -> int:
    """CPU threads per worker, so that training workers and the aggregation worker share the cores."""
    return max(1, (os.cpu_count() or 1) // (workers + 1))


def _listen_for_signals() -> None:
    """Ctrl-C, SIGTERM and a closed terminal all end the stack; nohup still works."""
    # SIGINT is set too, because a shell's background job is born ignoring it.
    ending = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ending.append(signal.SIGHUP)
    for number in ending:
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
