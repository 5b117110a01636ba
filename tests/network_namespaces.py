"""Hosts of the tests' own: network namespaces, which reach this machine's services through relays and nothing else."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import NamedTuple

from sqlalchemy.engine import make_url

LOOPBACK = "127.0.0.1"


def missing() -> str | None:
    """Why no host can be made here, or None."""
    if shutil.which("ip") is None:
        return "ip: apt-get install iproute2"
    if os.geteuid() != 0:
        return "root, to make network namespaces"
    probe = f"ferret-{secrets.token_hex(4)}"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"a kernel that lets us make network namespaces: {made.stderr.strip()}"
    _ip("netns", "delete", probe)
    return None


class Host(NamedTuple):
    """A network namespace; ``gateway`` is this machine's address there."""

    namespace: str
    gateway: str
    relays: ExitStack

    def command(self, command: Sequence[str]) -> list[str]:
        """The same, to be run on the host, in the process that is started for it."""
        return ["ip", "netns", "exec", self.namespace, *command]

    def reach(self, url: str) -> str:
        """The URL under which the host reaches what this machine has at ``url``, on the loopback interface."""
        here = make_url(url)
        assert here.host == LOOPBACK
        assert here.port is not None
        relay = self.relays.enter_context(_relayed(self.gateway, here.port))
        return here.set(host=self.gateway, port=relay).render_as_string(hide_password=False)


@contextmanager
def host() -> Iterator[Host]:
    """A host with no connection but the one to this machine."""
    name, octet = secrets.token_hex(4), secrets.randbelow(256)
    namespace, outside, network = f"ferret-{name}", f"fer{name}", f"10.213.{octet}"
    _ip("netns", "add", namespace)
    try:
        _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        _ip("address", "add", f"{network}.1/30", "dev", outside)
        _ip("link", "set", outside, "up")
        _ip("-n", namespace, "address", "add", f"{network}.2/30", "dev", "eth0")
        for device in ("eth0", "lo"):
            _ip("-n", namespace, "link", "set", device, "up")
        with ExitStack() as relays:
            yield Host(namespace, f"{network}.1", relays)
    finally:
        _ip("netns", "delete", namespace)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


@contextmanager
def _relayed(address: str, port: int) -> Iterator[int]:
    """The port at ``address`` behind which is this machine's own ``port``."""

    class Relay(BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((LOOPBACK, port)) as there:
                back = threading.Thread(target=_pump, args=(there, self.request), daemon=True)
                back.start()
                _pump(self.request, there)
                back.join()

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server((address, 0), Relay) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    """All that comes, until one of the two is closed."""
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
