"""The service answers to its own names alone, and never tells another one as its address."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest

from tests.api.conftest import open_site
from tests.security.test_connections import Peer

FOREIGN = ["evil.example", "evil.example:8765", "testserver.evil.example", "localhost.evil.example", "", "a b", "[::1"]
OWN = [
    "127.0.0.1:8765",
    "192.0.2.7",
    "[::1]:8765",
    "localhost",
    "ferret.localhost:1",
    socket.gethostname(),
    "LOCALHOST.",
]


@pytest.mark.parametrize("host", FOREIGN)
def test_another_name_is_refused_everywhere(shared_site: Any, host: str) -> None:
    for path in ("/", "/healthz", "/api/v1/info", "/api/v1/nowhere"):
        answer = shared_site.admin.get(path, headers={"Host": host})
        assert (answer.status_code, answer.json()["code"]) == (421, "host.unknown"), path
        assert "FERRET_ALLOWED_HOSTS" in answer.json()["detail"]


@pytest.mark.parametrize("host", OWN)
def test_its_own_names_and_every_address_are_answered(shared_site: Any, host: str) -> None:
    assert shared_site.admin.get("/api/v1/info", headers={"Host": host}).status_code == 200


def test_configured_names_are_answered(make_settings: Any) -> None:
    changes = {"public_url": "https://Ferret.example.org:8443", "allowed_hosts": "testserver, api"}
    with open_site(make_settings(**changes)) as site:
        for host, status in (("ferret.example.org", 200), ("api:8765", 200), ("API", 200), ("other", 421)):
            assert site.admin.get("/healthz", headers={"Host": host}).status_code == status
    with open_site(make_settings(allowed_hosts="*")) as site:
        assert site.admin.get("/healthz", headers={"Host": "anything"}).status_code == 200


def command(site: Any, host: str) -> str:
    address = f"/api/v1/experiments/{site.running(participants={'edge': 1})}/enrolments"
    return site.admin.post(address, json={}, headers={"Host": host}).json()["command"]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"public_url": "https://ferret.example.org/lab/"}, "https://ferret.example.org/lab"),
        ({}, "http://127.0.0.1:80"),
        ({"host": "::1"}, "http://[::1]:80"),
        ({"host": "0.0.0.0"}, "http://198.51.100.9:9999"),
    ],
    ids=["configured", "bound", "bound IPv6", "everywhere"],
)
def test_the_enrolment_command_names_the_configured_address(
    make_settings: Any, changes: dict[str, str], shown: str
) -> None:
    with open_site(make_settings(**changes)) as site:
        assert command(site, "198.51.100.9:9999") == f"ferret join {shown} --data FILE.jsonl"


@pytest.mark.parametrize("url", ["ferret.example.org", "ftp://x", "https://", "https://x/?a=b"])
def test_a_public_url_that_is_none_is_refused_at_start(make_settings: Any, url: str) -> None:
    with pytest.raises(ValueError, match="must be an address"):
        make_settings(public_url=url)


def raw(live: Any, *lines: str) -> tuple[bytes, dict[str, Any]]:
    with Peer(live.port) as peer:
        peer.send("\r\n".join([*lines, "", ""]).encode())
        head, _, body = peer.rest().partition(b"\r\n\r\n")
    return head, json.loads(body)


def test_a_length_and_an_encoding_together_are_refused_and_the_connection_is_closed(
    serve: Any, make_settings: Any
) -> None:
    live = serve(make_settings())
    lines = ["POST /api/v1/session HTTP/1.1", "Host: x", "Content-Length: 4", "Transfer-Encoding: chunked"]
    head, problem = raw(live, *lines, "", "0", "", "GET /smuggled HTTP/1.1", "Host: x")
    assert head.startswith((b"HTTP/1.1 422", b"HTTP/1.1 400"))
    assert problem["code"] == "request.invalid"
    assert b"connection: close" in head.lower()


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("experiments", "GET, POST"),
        ("experiments/exp_1", "DELETE, GET, PATCH"),
        ("session", "DELETE, POST"),
        ("info", "GET"),
    ],
)
def test_allow_names_every_method_of_the_address(shared_site: Any, path: str, allowed: str) -> None:
    answer = shared_site.admin.request("PUT", f"/api/v1/{path}")
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
    assert f"use {allowed}" in answer.json()["detail"]


def test_a_process_on_this_machine_cannot_choose_the_address_in_the_audit_log(serve: Any, make_settings: Any) -> None:
    """Headers of a reverse proxy count only if the operator has named the proxy."""
    live = serve(make_settings())
    forged = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
    wrong = {"name": "anna", "password": "a wrong password"}
    assert httpx.post(f"{live.url}/api/v1/session", json=wrong, headers=forged).status_code == 401
    (failed,) = live.site.audit(action="sign_in.failed")
    assert failed["detail"]["address"] == "127.0.0.1"
