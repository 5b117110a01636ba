"""The whole service on one machine: what ``ferret serve`` and ``ferret demo`` start and stop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from types import FrameType
from urllib.parse import quote

from ferret_cli.stack import broker, parts, ports
from ferret_cli.stack.child import Child
from ferret_cli.stack.home import admin_token, announced, locked
from ferret_cli.stack.readiness import wait_until_ready
from ferret_cli.stack.supervisor import Supervisor, silent_after
from ferret_core import demo
from ferret_core.private import keep_private

WATCH_SECONDS = 0.2


@dataclass(frozen=True)
class Plan:
    """Where a stack keeps its state, where it listens, how many training workers it has, and what it reads.

    ``roots``: folders of data and models, beside those that are read in any case.
    """

    home: Path
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    roots: tuple[Path, ...] = ()

    @property
    def reachable_host(self) -> str:
        """An address under which this machine reaches the API: listening everywhere is no address."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  # nosec B104

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
        """Replaces what crashes or hangs until a signal raises KeyboardInterrupt."""
        while True:
            self.supervisor.supervise()
            time.sleep(WATCH_SECONDS)


@contextmanager
def running(plan: Plan, say: Callable[[str], None]) -> Generator[Stack]:
    """Starts everything and waits until it is ready; at the end of the block everything is stopped again.

    Raises ``home.in_use`` or ``port.in_use`` before anything is started or changed.
    """
    from ferret_db import intact, migrate
    from ferret_db.settings import ServiceSettings

    _listen_for_signals()
    with locked(plan.home), ports.listening(plan.host, plan.port) as listener:
        settings = ServiceSettings.read(home=plan.home)
        keep_private(plan.home)
        intact.require(settings)
        migrate.upgrade(settings.database_url)
        supervisor = Supervisor(say, silent=silent_after(settings.lease_seconds))
        try:
            for child in _children(plan, listener):
                supervisor.start(child)
            wait_until_ready(plan.reachable_host, plan.port, supervisor.require_running)
            with announced(plan.home, plan.url):
                yield Stack(plan, admin_token(plan.home), supervisor)
        finally:
            say("stopping")
            supervisor.stop()


def _children(plan: Plan, listener: socket) -> list[Child]:
    """Broker (unless one is configured), API, training workers, aggregation worker: the order of starting."""
    environment = {
        "FERRET_HOME": str(plan.home),
        "FERRET_HOST": plan.host,
        "FERRET_PORT": str(plan.port),
        "FERRET_THREADS": os.environ.get("FERRET_THREADS") or str(_threads(plan.workers)),
        "FERRET_ROOTS": os.pathsep.join(str(root) for root in _roots(plan)),
        "PYTHONUNBUFFERED": "1",
    }
    children: list[Child] = []
    if not broker.is_configured():
        own = broker.prepare(plan.home)
        environment["FERRET_BROKER_URL"] = own.url
        children.append(own.child)
    train = {"train" if number == 1 else f"train-{number}": "train" for number in range(1, plan.workers + 1)}
    children.append(parts.api(plan.home, plan.reachable_host, plan.port, environment, listener))
    for name, queue in {**train, "aggregate": "aggregate"}.items():
        children.append(parts.worker(plan.home, name, queue, environment))
    return children


def _roots(plan: Plan) -> list[Path]:
    """The plan's, and what is set; where nothing is: home, the demo, and the folder that this was started in."""
    if given := os.environ.get("FERRET_ROOTS"):
        return [*plan.roots, *map(Path, filter(None, given.split(os.pathsep)))]
    here = Path.cwd()
    own = [] if here == Path(here.anchor) else [here]  # a service manager starts it in /, which is everything
    return [*plan.roots, plan.home, demo.model_path().parent, *own]


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
