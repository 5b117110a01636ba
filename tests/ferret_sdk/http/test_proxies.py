"""Requests by way of a real proxy (proxy.py, a process of its own), and what a proxy answers in the server's place."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ferret_sdk.http import proxies
from ferret_sdk.http.transport import Transport
from tests.refusals import refused

NAME = "ferret.test"
PAGE = b"<html><head><title>Access\n denied</title></head></html>"
pytestmark = pytest.mark.heavy


@pytest.fixture
def proxy(tmp_path) -> Iterator[Callable[..., str]]:
    """Starts a proxy with options of its own; gives its host and port."""
    with ExitStack() as stack:

        def start(*options: str) -> str:
            port = tmp_path / f"port-{len(options)}"
            command = [
                sys.executable,
                "-m",
                "proxy",
                "--port",
                "0",
                "--port-file",
                str(port),
                "--log-level",
                "CRITICAL",
            ]
            command += ["--num-workers", "1", "--num-acceptors", "1", "--plugins", "names.HereForEveryName"]
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "HOME": str(tmp_path)}
            process = stack.enter_context(subprocess.Popen([*command, *options], env=environment))
            stack.callback(process.terminate)
            while not port.exists() or not port.read_text():
                assert process.poll() is None
                time.sleep(0.02)
            return f"127.0.0.1:{int(port.read_text())}"

        yield start


def test_requests_go_through_the_proxys_tunnel_and_the_certificate_is_the_servers(
    proxy, serve_tls, authority, ca, monkeypatch
):
    server = serve_tls(authority.issue_cert(NAME))
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy()}")
    transport = Transport(f"https://{NAME}:{server.port}", ca=ca)
    assert transport.get("/info") == {}
    assert transport.request("PUT", "/participant/assignments/a/contribution", content=b"x" * 100_000).body == b"{}"
    assert len(server.requests[1].body) == 100_000


def test_a_host_in_no_proxy_is_asked_directly(serve_tls, authority, ca, monkeypatch):
    server = serve_tls(authority.issue_cert(NAME))
    known = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **more: known("127.0.0.1", *rest, **more))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "example.org,.test")
    transport = Transport(f"https://{NAME}:{server.port}", ca=ca)
    assert transport.get("/info") == {}


def test_a_proxy_that_demands_a_login_says_how_to_give_one(proxy, serve_tls, authority, ca, monkeypatch):
    server = serve_tls(authority.issue_cert(NAME))
    address = proxy("--basic-auth", "clinic:secret")
    monkeypatch.setenv("HTTPS_PROXY", f"http://clinic:wrong@{address}")
    with refused("proxy.refused", "demands a login") as raised:
        Transport(f"https://{NAME}:{server.port}", ca=ca).get("/info")
    assert f"the proxy {address} (HTTPS_PROXY)" in raised.value.detail
    assert "wrong" not in raised.value.detail
    monkeypatch.setenv("HTTPS_PROXY", f"http://clinic:secret@{address}")
    assert Transport(f"https://{NAME}:{server.port}", ca=ca).get("/info") == {}


def test_a_proxy_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with refused("server.unreachable", "127.0.0.1:9", "HTTPS_PROXY"):
        Transport(f"https://{NAME}").get("/info", attempts=1)


def test_a_proxy_that_forbids_the_address_says_so_at_once(proxy, monkeypatch):
    forbidding = ("--plugins", "proxy.plugin.FilterByUpstreamHostPlugin", "--filtered-upstream-hosts", NAME)
    monkeypatch.setenv("HTTPS_PROXY", f"http://{proxy(*forbidding)}")
    with refused("proxy.refused", "ask who runs your network to allow this address"):
        Transport(f"https://{NAME}").get("/info")


@pytest.mark.parametrize("status", [200, 403, 404, 511])
def test_a_web_page_in_place_of_an_answer_is_quoted_with_who_sent_it(server, monkeypatch, status):
    server.script(lambda exchange: exchange.send(status, PAGE, Content_Type="text/html; charset=utf-8"))
    monkeypatch.setenv("HTTP_PROXY", server.url)
    transport = Transport(f"http://{NAME}", insecure_http=True)
    with refused("server.unexpected", "'Access denied'") as raised:
        transport.request("PUT", "/participant/assignments/a/contribution", content=b"x")
    assert f"the proxy 127.0.0.1:{server.port} (HTTP_PROXY)" in raised.value.detail
    with refused("server.unexpected", "web page"), transport.stream("/file"):
        pass


def test_a_gateways_page_is_waited_out(server):
    server.script(
        lambda exchange: exchange.send(502, PAGE, Content_Type="text/html"),
        lambda exchange: exchange.json({"ok": True}),
    )
    assert Transport(server.url).get("/info") == {"ok": True}


def test_a_proxy_that_cannot_be_used_is_told_at_once(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "gopher://proxy:70")
    with refused("request.invalid", "HTTPS_PROXY"):
        Transport(f"https://{NAME}")


@pytest.mark.parametrize(
    ("environment", "url", "expected"),
    [
        ({}, "https://a.example", None),
        ({"https_proxy": "http://u:p@proxy:3128/"}, "https://a.example", "the proxy proxy:3128 (HTTPS_PROXY)"),
        ({"ALL_PROXY": "proxy:3128"}, "https://a.example", "the proxy proxy:3128 (ALL_PROXY)"),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".example"}, "https://a.example", None),
        ({"HTTP_PROXY": "http://proxy:3128"}, "https://a.example", None),
    ],
)
def test_the_proxy_of_an_address(environment, url, expected, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = proxies.of(url)
    assert (found and str(found)) == expected
