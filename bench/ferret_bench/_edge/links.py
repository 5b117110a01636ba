"""The network links between sites and server."""

from __future__ import annotations

import ipaddress
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

from ferret_bench._edge import lossy_link
from ferret_bench._edge.lossy_link import HERE, Link
from ferret_bench._edge.relay import Relay
from ferret_bench._edge.site_process import Place
from ferret_cli.stack.ports import free_port
from ferret_core.protocol.errors import FerretError

NAMESPACE = "ferret-bench"
START_SECONDS = 20
ELSEWHERE = ("198.51.100.1", 9)
"""An address for documentation (RFC 5737)."""


@contextmanager
def direct() -> Generator[Place]:
    """Over the loopback interface."""
    yield Place("127.0.0.1")


@contextmanager
def lossy() -> Generator[Place]:
    """Over a link of 300 ms and 10 % loss each way, from a network namespace that leads nowhere else."""
    with lossy_link.lossy(NAMESPACE, Link()):
        yield Place(str(HERE.ip), prefix=lossy_link.prefix(NAMESPACE))


@contextmanager
def proxied() -> Generator[Place]:
    """Through an HTTP proxy (CONNECT). Clients do not take the server's address for their machine's."""
    port = free_port()
    command = [
        sys.executable,
        "-P",
        "-m",
        "proxy",
        "--hostname",
        "127.0.0.1",
        "--port",
        str(port),
        "--num-workers",
        "1",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await_listening(port)
        with Relay("127.0.0.1", ("127.0.0.1", port)) as before:
            yield Place(_address(), {"HTTPS_PROXY": f"http://127.0.0.1:{before.port}", "NO_PROXY": ""})
            if not before.bytes.up:
                raise FerretError("server.unexpected", "the sites went past the proxy")
    finally:
        process.terminate()
        process.wait()


WAYS: dict[str, Callable[[], AbstractContextManager[Place]]] = {"direct": direct, "lossy": lossy, "proxied": proxied}


def missing(way: str) -> str | None:
    """Returns the reason that this link is not possible on this machine, or None."""
    if way == "lossy" and not lossy_link.is_permitted():
        return "needs root, /dev/net/tun and the command ip"
    if way == "proxied" and ipaddress.ip_address(_address()).is_loopback:
        return "needs an address other than the loopback's"
    return None


def _address() -> str:
    """Returns this machine's external address, without sending anything, or the loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE)
        except OSError:
            return "127.0.0.1"
        return probe.getsockname()[0]


def _await_listening(port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise FerretError("server.not_ready", f"the proxy does not listen on port {port}")
