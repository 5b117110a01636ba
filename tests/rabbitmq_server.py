"""The tests' RabbitMQ: the one that runs here, or one of their own where only its programs are installed."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ferret_cli.stack.child import Child
from ferret_cli.stack.ports import free_port
from ferret_core.protocol.tasks import Queue
from ferret_db.broker import rabbitmq

PROGRAMS = Path("/usr/lib/rabbitmq/bin")
"""Debian's programs on the PATH work for root alone, and on the one server of the machine."""
MISSING = "no RabbitMQ: apt-get install rabbitmq-server, and the tests start one"
START_SECONDS = 90.0


@dataclass(frozen=True)
class Server:
    """``control`` is its rabbitmqctl."""

    port: int
    control: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def url(self, vhost: str = "", user: str = "guest", password: str = "guest") -> str:
        return f"amqp://{user}:{password}@127.0.0.1:{self.port}/{vhost}"

    def act(self, *command: str) -> None:
        """Raises ``CalledProcessError`` where it is refused."""
        subprocess.run(
            [*self.control, "-q", *command],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=60,
        )

    @contextmanager
    def vhost(self) -> Iterator[str]:
        """The URL of an empty vhost, gone afterwards with all it held."""
        name = f"ferret-test-{secrets.token_hex(8)}"
        self.act("add_vhost", name)
        try:
            self.act("set_permissions", "-p", name, "guest", ".*", ".*", ".*")
            yield self.url(name)
        finally:
            self.act("delete_vhost", name)

    def answers(self) -> bool:
        """Whether we may sign in and give orders."""
        try:
            with rabbitmq.connected(self.url()):
                self.act("status")
        except (*rabbitmq.ERRORS, subprocess.SubprocessError):
            return False
        return True


USUAL = Server(5672, ("rabbitmqctl",))


def empty(url: str) -> None:
    """Deletes the queues of Ferret from the vhost."""
    with rabbitmq.connected(url) as connection:
        channel = connection.channel()
        for queue in Queue:
            channel.queue_delete(str(queue))


def is_installed() -> bool:
    return (PROGRAMS / "rabbitmq-server").exists()


@contextmanager
def started() -> Iterator[Server]:
    """A server on a free port, gone afterwards with all it held."""
    folder = Path(tempfile.mkdtemp(prefix="ferret-rabbitmq-"))
    port, node = free_port(), f"ferret-{secrets.token_hex(4)}@localhost"
    environment = {
        "HOME": str(folder),  # of the cookie by which its programs know it
        "RABBITMQ_NODENAME": node,
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "RABBITMQ_MNESIA_BASE": f"{folder}/data",
        "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
        "RABBITMQ_LOGS": "-",
    }
    child = Child("rabbitmq", [str(PROGRAMS / "rabbitmq-server")], folder / "server.log", environment)
    child.start()
    server = Server(port, (str(PROGRAMS / "rabbitmqctl"), "-n", node), environment)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not server.answers():
            assert child.exit_code is None, child.last_lines()
            assert time.monotonic() < deadline, child.last_lines()
            time.sleep(0.5)
        yield server
    finally:
        child.kill()
        shutil.rmtree(folder, ignore_errors=True)
