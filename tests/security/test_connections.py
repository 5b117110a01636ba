"""Slow, silent and many connections: none of them takes the service from anybody else."""

from __future__ import annotations

import json
import re
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from ferret_api.connections.listener import Listener
from ferret_api.connections.pool import Connections
from ferret_api.server import listen
from tests.api.receiver import eventually
from tests.security.api_process import ApiProcess

pytestmark = pytest.mark.timeout(120)

PATIENCE = 30.0
"""Seconds after which a test gives up; nothing waits so long unless it fails."""


class Peer:
    """One raw connection."""

    def __init__(self, port: int, *, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def drip(self, data: bytes) -> bytes:
        """Sends a byte now and then until the server says something or hangs up; returns all that it said."""
        self.socket.settimeout(0.05)
        deadline = time.monotonic() + PATIENCE
        for byte in data * 1000:
            assert time.monotonic() < deadline, "the server took whatever came, for as long as it came"
            try:
                self.socket.send(bytes([byte]))
                if said := self.socket.recv(1 << 16):
                    return said + self.rest()
            except TimeoutError:
                continue
            except ConnectionError:
                break
            return b""
        return b""

    def read_to(self, end: bytes) -> None:
        said = b""
        while end not in said:
            chunk = self.socket.recv(1 << 16)
            assert chunk, said
            said += chunk

    def rest(self) -> bytes:
        """What the server says until it hangs up."""
        self.socket.settimeout(PATIENCE)
        said = b""
        with suppress(ConnectionResetError):
            while chunk := self.socket.recv(1 << 16):
                said += chunk
        return said


@pytest.fixture
def quick(serve: Any, make_settings: Any) -> Any:
    """A server with short deadlines."""
    return serve(make_settings(header_seconds=0.5, body_seconds=0.5, body_bytes_per_second=100, keep_alive_seconds=1))


def code(answer: bytes) -> str:
    """Of the problem document at the end of a raw answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 ")
    return json.loads(body)["code"]


def post(live: Any, size: int) -> bytes:
    """The head of a request with a body, from the administrator."""
    head = (
        f"POST /api/v1/experiments HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
    )
    return f"{head}Authorization: {live.admin.headers['Authorization']}\r\n\r\n".encode()


def test_a_connection_that_says_nothing_is_closed(quick: Any) -> None:
    with Peer(quick.port) as peer:
        assert peer.rest() == b""


@pytest.mark.parametrize("second", [False, True], ids=["first", "second"])
def test_a_head_that_drips_is_refused_and_closed(quick: Any, second: bool) -> None:
    with Peer(quick.port) as peer:
        if second:
            peer.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            peer.read_to(b'"ok"}')
        peer.send(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        assert code(peer.drip(b"a")) == "request.timeout"


def test_no_part_of_an_answer_waits_until_the_client_has_acknowledged_the_one_before(quick: Any) -> None:
    """By Nagle's algorithm each answer with a body would come 40 ms late over a connection that is kept."""
    with Peer(quick.port) as peer:
        peer.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        peer.read_to(b'"ok"}')
        accepted = [protocol.transport.get_extra_info("socket") for protocol in quick.server.server_state.connections]
        assert accepted
        assert all(each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in accepted)


def test_a_connection_that_came_before_the_server_was_ready_has_the_same_options(quick: Any) -> None:
    listening = listen("127.0.0.1", 0)
    connections = Connections(quick.server.connections.sizing)
    with Peer(listening.getsockname()[1]), Listener(listening, connections) as listener:
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 500


def test_a_connection_without_another_request_is_closed(quick: Any) -> None:
    with Peer(quick.port) as peer:
        peer.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in peer.rest()


def test_a_body_that_drips_is_refused_and_closed(quick: Any) -> None:
    with Peer(quick.port) as peer:
        peer.send(post(quick, 1000))
        assert code(peer.drip(b" ")) == "request.timeout"
    assert quick.server.connections.closed["body_timeout"] == 1


@pytest.mark.slow
def test_a_body_that_nobody_reads_any_more_buys_no_time(quick: Any) -> None:
    """Refused for its size before it came, it is not taken for ever, however fast it comes."""
    with Peer(quick.port) as peer, suppress(ConnectionError):
        peer.send(post(quick, 10**12))
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            peer.send(bytes(1000))
            time.sleep(0.01)
        pytest.fail("the server took whatever came, for as long as it came")


def test_a_slow_body_that_keeps_its_rate_is_taken(quick: Any) -> None:
    with Peer(quick.port) as peer:
        peer.send(post(quick, 2002))
        for chunk in [b'"', *[b"x" * 200] * 10]:
            peer.send(chunk)
            time.sleep(0.2)
        peer.send(b'"')
        assert code(peer.rest()) == "spec.invalid"  # it came, and is no specification


def test_a_client_that_does_not_read_its_answers_is_closed(quick: Any) -> None:
    with Peer(quick.port, receive_buffer=4096) as peer:
        peer.socket.settimeout(0.1)
        with suppress(TimeoutError):
            for _ in range(500):
                peer.send(b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
        quick.admin.close()
        eventually(lambda: quick.server.connections.open == 0)


def test_idle_connections_give_way_to_new_ones(serve: Any, make_settings: Any) -> None:
    live = serve(make_settings(max_connections=8, max_connections_per_address=8))
    with ExitStack() as held:
        for _ in range(40):
            held.enter_context(Peer(live.port))
        for _ in range(10):
            assert answers(live)
        assert live.server.connections.open <= 8 + 1
    assert live.server.connections.closed["evicted"] >= 32


def test_one_address_gets_half_of_all(serve: Any, make_settings: Any) -> None:
    live = serve(make_settings(max_connections=8))
    with working(live, 4):
        assert refused(live.port)
        with socket.create_connection(("127.0.0.1", live.port), PATIENCE, ("127.0.0.2", 0)) as neighbour:
            neighbour.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200 OK" in neighbour.recv(1 << 16)


def test_connections_at_work_are_not_evicted_and_the_next_one_is_told_to_come_again(
    serve: Any, make_settings: Any
) -> None:
    live = serve(make_settings(max_connections=5, max_connections_per_address=5))
    with working(live, 5) as peers:
        assert refused(live.port)
        peers[0].send(b'"x"')
        peers[0].read_to(b"spec.invalid")
        assert answers(live)


@contextmanager
def working(live: Any, count: int) -> Iterator[list[Peer]]:
    """The only connections of the server: all of them have sent half a request."""
    live.admin.close()
    eventually(lambda: live.server.connections.open == 0)
    with ExitStack() as held:
        peers = [held.enter_context(Peer(live.port)) for _ in range(count)]
        for peer in peers:
            peer.send(post(live, 3))
        eventually(lambda: sum(not connection.idle for connection in live.server.connections._open) == count)
        yield peers


def refused(port: int) -> bool:
    with Peer(port) as peer:
        return code(peer.rest()) == "server.busy"


def answers(server: Any) -> bool:
    return httpx.get(f"{server.url}/healthz", timeout=PATIENCE).status_code == 200


def descriptors(api: ApiProcess) -> int:
    return len(list(Path(f"/proc/{api.process.pid}/fd").iterdir()))


@pytest.mark.slow
def test_330_idle_sockets_at_300_descriptors_take_nothing_from_anybody(home: Path) -> None:
    with ApiProcess(home, files=(100, 300)) as api, ExitStack() as held:
        limits = Path(f"/proc/{api.process.pid}/limits").read_text()
        assert re.search(r"Max open files\s+300\s+300", limits), "raised to the hard limit"
        for _ in range(330):
            held.enter_context(Peer(api.port))
        assert all(answers(api) for _ in range(20))
        assert descriptors(api) < 250
        assert len(api.said()) < 20_000


def test_without_a_descriptor_left_it_waits_quietly_and_goes_on_when_there_is_one(home: Path) -> None:
    with ApiProcess(home, files=(300, 300)) as api, ExitStack() as held:
        assert answers(api)
        resource.prlimit(api.process.pid, resource.RLIMIT_NOFILE, (descriptors(api) - 2, 300))
        for _ in range(50):
            held.enter_context(Peer(api.port))
        time.sleep(3)
        assert len(api.said()) < 50_000
        resource.prlimit(api.process.pid, resource.RLIMIT_NOFILE, (300, 300))
        assert answers(api)


def test_a_trusted_proxy_may_have_all_connections(serve: Any, make_settings: Any) -> None:
    live = serve(make_settings(max_connections=8, trusted_proxies="127.0.0.1"))
    with working(live, 7):
        assert answers(live)
