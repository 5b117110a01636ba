"""Handshakes that are never finished, or fail, take no place from anybody."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from ferret_sdk.http.certificates import pinned
from tests.api.conftest import Live
from tests.api.receiver import eventually
from tests.security.test_connections import PATIENCE, Peer

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def secure(tmp_path: Path, serve: Any, make_settings: Any) -> Callable[..., Live]:
    """A server with a certificate, and its administrator's connection closed."""
    issued = trustme.CA().issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    key.chmod(0o600)

    def start(**changes: Any) -> Live:
        live = serve(make_settings(tls_cert=cert, tls_key=key, **changes))
        live.admin.close()
        eventually(lambda: live.server.connections.open == 0)
        return live

    return start


def healthz(live: Live) -> httpx.Response:
    return httpx.get(f"{live.url}/healthz", verify=pinned(live.site.context.settings.tls_cert), timeout=PATIENCE)


def test_handshakes_that_fail_are_forgotten(secure: Any) -> None:
    live = secure(max_connections=8, max_connections_per_address=8)
    for said in [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\xff\xff", bytes(64), b""] * 10:
        with Peer(live.port) as peer, suppress(ConnectionError):
            peer.send(said)
    for _ in range(3):  # unknown authority: the client breaks off in the middle
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{live.url}/healthz", timeout=PATIENCE)
    eventually(lambda: live.server.connections.open == 0)
    assert healthz(live).status_code == 200


def test_a_handshake_that_is_not_begun_is_closed(secure: Any) -> None:
    live = secure(header_seconds=0.5)
    with Peer(live.port) as peer:
        assert peer.rest() == b""
    eventually(lambda: live.server.connections.open == 0)
    assert live.server.connections.closed["handshake_timeout"] == 1


def test_handshakes_give_way_to_new_connections(secure: Any) -> None:
    live = secure(max_connections=8, max_connections_per_address=8)
    with ExitStack() as held:
        for _ in range(100):
            held.enter_context(Peer(live.port))
        began = time.monotonic()
        for _ in range(10):
            assert healthz(live).status_code == 200
        assert time.monotonic() - began < live.site.context.settings.sizing.header_seconds
        assert live.server.connections.open <= 8 + 1
    assert live.server.connections.closed["evicted"] >= 92


def test_deadlines_hold_inside_of_tls(secure: Any) -> None:
    live = secure(header_seconds=0.5, body_seconds=0.5, body_bytes_per_second=100)
    context = pinned(live.site.context.settings.tls_cert)
    with socket.create_connection(("127.0.0.1", live.port), PATIENCE) as raw, context.wrap_socket(raw) as peer:
        peer.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        said = b""
        with suppress(ssl.SSLError, ConnectionError):
            while chunk := peer.recv(1 << 16):
                said += chunk
    assert b"request.timeout" in said
    eventually(lambda: live.server.connections.open == 0)


def test_old_versions_of_tls_are_refused(secure: Any) -> None:
    live = secure()
    context = pinned(live.site.context.settings.tls_cert)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", live.port), PATIENCE) as raw,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(raw)
