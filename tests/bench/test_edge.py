"""Five processes over TLS, one of each trouble; what is counted is what passed."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ferret_bench._edge import lossy_link
from ferret_bench._edge.lossy_link import HERE, Link
from ferret_bench._edge.relay import Bytes, Relay
from ferret_bench.edge import COLUMNS, MEMBERS, QUICK_MISSED, Benchmark


@pytest.fixture
def doubling() -> Iterator[tuple[str, int]]:
    """A server that answers every connection with twice what it got, when that has ended."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(_all_of(connection) * 2)

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()


def _all_of(connection: socket.socket) -> bytes:
    received = bytearray()
    while chunk := connection.recv(1 << 16):
        received += chunk
    return bytes(received)


def _asked(port: int, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return _all_of(connection)


def test_a_relay_counts_every_byte_of_all_connections(doubling: tuple[str, int]) -> None:
    with Relay("127.0.0.1", doubling) as relay:
        assert [_asked(relay.port, b"x" * size) for size in (1, 300_000)] == [b"xx", b"x" * 600_000]
        assert relay.bytes == Bytes(300_001, 600_002)


def test_a_relay_that_ends_lets_go_of_its_connections(doubling: tuple[str, int]) -> None:
    with Relay("127.0.0.1", doubling) as relay:
        connection = socket.create_connection(("127.0.0.1", relay.port))
        connection.sendall(b"x")
    connection.settimeout(10)
    with connection, suppress(ConnectionResetError):
        assert connection.recv(1) in {b"", b"x"}  # a reset ends it too; a timeout would not


@pytest.mark.skipif(not lossy_link.is_permitted(), reason="needs root and /dev/net/tun")
def test_a_lossy_link_delays_and_loses_and_tcp_gets_through() -> None:
    sent = bytes(range(256)) * 200
    script = f"""
import socket, sys
with socket.create_connection(("{HERE.ip}", int(sys.argv[1])), 60) as connection:
    connection.sendall(bytes(range(256)) * 200)
"""
    with (
        lossy_link.lossy("ferret-test", Link(delay=0.05, loss=0.1)),
        socket.create_server((str(HERE.ip), 0)) as listener,
    ):
        listener.settimeout(60)
        command = [*lossy_link.prefix("ferret-test"), sys.executable, "-c", script]
        begin = time.monotonic()
        with subprocess.Popen([*command, str(listener.getsockname()[1])]) as process:
            connection, _ = listener.accept()
            with connection:
                assert _all_of(connection) == sent
        assert process.returncode == 0
    assert time.monotonic() - begin > 0.15, "the handshake alone is three packets"
    assert "ferret-test" not in subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_sites_agree_whatever_happens_to_them() -> None:
    benchmark, said = Benchmark(), list[str]()
    document = benchmark.run(said.append, quick=True, max_seconds=800)
    json.dumps(document, allow_nan=False)
    direct = document["ways"]["direct"]
    sites = {site["site"]: site for site in direct["sites"]}
    assert (direct["state"], direct["agree"]) == ("completed", True)
    assert direct["refused"] == ["divergent: contribution.wrong_base"]
    assert {name: site["status"] for name, site in sites.items() if name != "revoked"} == dict.fromkeys(
        ("steady", "killed", "late", "divergent"), 0
    )
    assert sites["late"]["rounds"][0] == 5
    assert len(sites["killed"]["rounds"]) == len(sites["divergent"]["rounds"]) == direct["rounds"]
    assert sites["revoked"]["status"] != 0
    assert document["catch_up"]["missed"] >= QUICK_MISSED
    assert len(benchmark.tables(document)[0].columns) == len(COLUMNS)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_sites_that_sum_under_masks_survive_kills_and_name_the_cheater() -> None:
    benchmark, said = Benchmark(secure=True), list[str]()
    document = benchmark.run(said.append, quick=True, max_seconds=1400)
    json.dumps(document, allow_nan=False)
    five, ten = document["secure"], document["ten"]
    assert {name: each["holds"] for name, each in document["bounds"].items()} == dict.fromkeys(document["bounds"], True)
    assert five["named"] == ["cheater: secure.shares_invalid"]
    assert five["attempts"][0] > 1
    assert all(3 <= len(names) <= 5 for names in five["survivors"])
    assert {site["status"] for site in five["sites"]} == {0}
    assert ten["members"] == MEMBERS
    assert len(benchmark.tables(document)) == 3
