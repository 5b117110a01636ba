"""The whole service on one machine, as ``ferret serve`` and ``ferret demo`` start and stop it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ferret_cli.stack import broker, ports
from ferret_cli.stack.child import Child
from ferret_cli.stack.home_lock import admin_token, announced, locked
from ferret_cli.stack.probe import Touched, wait_until_ready
from ferret_cli.stack.supervisor import Supervisor, silent_after
from ferret_core import sample
from ferret_core.protocol.errors import FerretError
from ferret_core.system.permissions import restrict_home
from ferret_core.system.tls_certificate import CERT, KEY, Certificate
from ferret_core.system.untrusted_files import USERS_DATA
from ferret_sdk.http.transport import Transport

if TYPE_CHECKING:
    from ferret_runtime.settings import ServiceSettings
HEARTBEATS = "heartbeats"
LISTEN = "FERRET_LISTEN_FD"
WATCH_SECONDS = 0.2
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nosec B104
"""Wildcard addresses, each with an address at which this machine reaches it."""


def api_process(
    home: Path, environment: Mapping[str, str], listener: socket.socket | None = None, name: str = "api"
) -> Child:
    """Returns the API. It inherits ``listener``, which several of its processes can share, or listens by itself."""
    if listener is None:
        return _beating(home, name, ["ferret_api"], environment, layer=1)
    child = _beating(home, name, ["ferret_api"], {**environment, LISTEN: str(listener.fileno())}, layer=1)
    child.descriptors = (listener.fileno(),)
    return child


def worker_process(home: Path, name: str, queue: str, environment: Mapping[str, str]) -> Child:
    """Returns a worker on ``queue``."""
    return _beating(home, name, ["ferret_worker", queue], environment, layer=2)


def participant_process(home: Path, name: str, arguments: list[str], environment: Mapping[str, str]) -> Child:
    """Returns ``ferret join``, which may end by itself."""
    child = _beating(home, name, ["ferret_cli", "join", *arguments], environment, layer=2)
    child.may_end = True
    return child


def _beating(home: Path, name: str, module: list[str], environment: Mapping[str, str], layer: int) -> Child:
    beat = home / HEARTBEATS / name
    beat.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", *module]  # -P: no folder of the working directory is imported
    log = home / "logs" / f"{name}.log"
    return Child(name, command, log, {**environment, "FERRET_HEARTBEAT": str(beat)}, layer, probe=Touched(beat))


@dataclass(frozen=True)
class Plan:
    """Plan of a stack: its folder, its address, its number of training workers and API processes, and its readable
    folders.

    ``roots``: folders of data and models, in addition to the default ones. ``certificate``: the API uses TLS with it.
    ``public_url``: the clients' address, if different.
    """

    home: Path
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    api_processes: int = 1
    roots: tuple[Path, ...] = ()
    certificate: Certificate | None = None
    public_url: str | None = None

    @property
    def reachable_host(self) -> str:
        """A host name under which this machine reaches the API; a wildcard address becomes a concrete one."""
        return EVERYWHERE.get(self.host, self.host)

    @property
    def url(self) -> str:
        """The address at which this machine reaches the API."""
        return self._url(self.reachable_host)

    @property
    def shown_url(self) -> str:
        """The address for people: :attr:`url`, or a name in the certificate, so that browsers accept it."""
        if self.certificate is None:
            return self.url
        if self.host not in EVERYWHERE and self.certificate.covers(self.host):
            return self._url(self.host)
        return self.public_url or self._url(self.certificate.host or socket.gethostname())

    def require_certificate(self) -> None:
        """Raises ``settings.invalid`` if the certificate has none of the clients' names for the server."""
        if self.certificate is None:
            return
        public = urlsplit(self.public_url or "")
        if public.scheme == "http":
            reason = "must begin with https://, since the service has a certificate"
            raise FerretError.of_field("settings.invalid", "FERRET_PUBLIC_URL", self.public_url, reason)
        hosts = [*([public.hostname] if public.hostname else []), *([] if self.host in EVERYWHERE else [self.host])]
        self.certificate.require(hosts or [self.certificate.host or socket.gethostname()])

    def _url(self, host: str) -> str:
        return f"{'https' if self.certificate else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"


@dataclass(frozen=True)
class Stack:
    """A running stack: its address, its token and the supervisor of its processes."""

    plan: Plan
    token: str
    supervisor: Supervisor

    def sign_in_address(self) -> str:
        """The one address a person needs. It signs one browser in, once; the fragment is never sent."""
        certificate = self.plan.certificate.cert_file if self.plan.certificate else None
        transport = Transport(self.plan.url, self.token, insecure_http=True, certificate=certificate)
        return f"{self.plan.shown_url}/#ticket={transport.post('/session/link').json()['token']}"

    def keep_running(self) -> None:
        """Restarts crashed or hanging children until a signal raises KeyboardInterrupt."""
        while True:
            self.supervisor.supervise()
            time.sleep(WATCH_SECONDS)


@contextmanager
def running(plan: Plan, say: Callable[[str], None]) -> Generator[Stack]:
    """Starts everything and waits until it is ready; stops everything at the end of the block.

    Raises ``home.in_use``, ``port.in_use`` or ``settings.invalid`` before anything is started or changed.
    """
    from ferret_db import integrity, migrate
    from ferret_runtime.settings import ServiceSettings

    def tell(text: str) -> None:
        with suppress(OSError):  # the terminal may be gone
            say(text)

    plan.require_certificate()
    _listen_for_signals()
    with locked(plan.home), ports.listening(plan.host, plan.port) as listener:
        settings = ServiceSettings.read(home=plan.home)
        restrict_home(plan.home)
        integrity.require(settings)
        migrate.upgrade(settings.database_url)
        supervisor = Supervisor(tell, silent=silent_after(settings.lease_seconds))
        try:
            for child in _children(plan, listener, settings):
                supervisor.start(child)
            certificate = plan.certificate.cert_file if plan.certificate else None
            wait_until_ready(plan.reachable_host, plan.port, supervisor.require_running, certificate)
            with announced(plan.home, plan.url, certificate):
                yield Stack(plan, admin_token(plan.home), supervisor)
        finally:
            tell("stopping")
            supervisor.stop()


def _children(plan: Plan, listener: socket.socket, settings: ServiceSettings) -> list[Child]:
    """Yields the started children: broker unless one is configured, API, workers, and, with a Redis, the playground."""
    environment = {
        "FERRET_HOME": str(plan.home),
        "FERRET_HOST": plan.host,
        "FERRET_PORT": str(plan.port),
        "FERRET_THREADS": os.environ.get("FERRET_THREADS") or str(_threads(plan.workers)),
        "FERRET_DATA_ROOTS": os.pathsep.join(str(root) for root in _roots(plan)),
        "PYTHONUNBUFFERED": "1",
    }
    if plan.certificate:
        environment |= {CERT: str(plan.certificate.cert_file), KEY: str(plan.certificate.key_file)}
    children: list[Child] = []
    if not broker.is_configured():
        own = broker.prepare(plan.home)
        environment["FERRET_BROKER_URL"] = own.url
        children.append(own.child)
    serving = environment | _figures(plan)
    children += [api_process(plan.home, serving, listener, name) for name in _numbered("api", plan.api_processes)]
    for name in _numbered("train", plan.workers):
        children.append(worker_process(plan.home, name, "train", environment))
    children += [worker_process(plan.home, queue, queue, environment) for queue in ("aggregate", "playground")]
    return children


def _figures(plan: Plan) -> dict[str, str]:
    """Returns the setting of the shared metrics folder: each of several API processes answers ``/metrics`` for all."""
    if plan.api_processes == 1:
        return {}
    folder = plan.home / "figures"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return {"PROMETHEUS_MULTIPROC_DIR": str(folder)}


def _numbered(name: str, count: int) -> list[str]:
    return [name, *(f"{name}-{number}" for number in range(2, count + 1))]


def _roots(plan: Plan) -> list[Path]:
    """By default, those are home's folder for data, the demo, and the current folder."""
    if given := os.environ.get("FERRET_DATA_ROOTS"):
        return [*plan.roots, *map(Path, filter(None, given.split(os.pathsep)))]
    here = Path.cwd()
    own = [] if here == Path(here.anchor) else [here]  # a service manager starts it in /, which is everything
    return [*plan.roots, plan.home / USERS_DATA, sample.model_path().parent, *own]


def _threads(workers: int) -> int:
    """Returns the CPU threads per worker, so that training workers and the aggregation worker share the cores."""
    return max(1, (os.cpu_count() or 1) // (workers + 1))


def _listen_for_signals() -> None:
    """Ends the stack on Ctrl-C, SIGTERM and a closed terminal; nohup still works."""
    # SIGINT is set too, because a shell's background job is born ignoring it.
    ending = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ending.append(signal.SIGHUP)
    for number in ending:
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
