from __future__ import annotations

import gc
import json
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from ferret_core.protocol.errors import FerretError
from ferret_sdk.http import retry
from ferret_sdk.http.transport import Transport, is_loopback
from tests.refusals import refused

PROBLEM = {
    "type": "urn:ferret:problem:experiment.not_found",
    "title": "No such experiment",
    "status": 404,
    "detail": "there is no exp_1",
    "code": "experiment.not_found",
    "request_id": "req_1",
    "errors": [{"field": "id", "value": "exp_1", "message": "unknown"}],
}


def test_a_problem_document_comes_back_as_the_error_it_was(server):
    server.script(lambda exchange: exchange.json(PROBLEM, 404))
    with refused("experiment.not_found") as raised:
        Transport(server.url).get("/experiments/exp_1")
    assert raised.value.detail == "there is no exp_1"
    assert [(error.field, error.value) for error in raised.value.errors] == [("id", "exp_1")]
    assert len(server.requests) == 1


def test_a_code_from_a_newer_server_keeps_its_status_and_its_name(server):
    server.script(lambda exchange: exchange.json({**PROBLEM, "code": "quota.exceeded", "status": 409}, 409))
    with refused("experiment.conflict", "quota.exceeded") as raised:
        Transport(server.url).get("/experiments")
    assert raised.value.problem.status == 409


def test_an_internal_error_names_the_request(server):
    server.script(lambda exchange: exchange.json({**PROBLEM, "code": "internal", "status": 500}, 500))
    with refused("internal", "req_1"):
        Transport(server.url).get("/experiments")
    assert len(server.requests) == 1


def test_an_answer_that_is_not_ferrets_is_said_to_be(server):
    server.script(lambda exchange: exchange.send(200, b"<html>hello</html>"))
    with refused("server.unexpected", "address of a Ferret server"):
        Transport(server.url).get("/info")


def test_token_and_query_are_sent(server):
    Transport(server.url, "secret").get("/experiments", state=["queued", "running"], name=None, limit=5)
    assert server.requests[0].headers["authorization"] == "Bearer secret"
    assert server.requests[0].path == "/api/v1/experiments?state=queued&state=running&limit=5"


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_get_is_repeated_while_the_server_is_not_ready(server, status):
    server.script(lambda exchange: exchange.send(status, b""), lambda exchange: exchange.json({"ok": True}))
    assert Transport(server.url).get("/info") == {"ok": True}
    assert len(server.requests) == 2


@pytest.mark.heavy
def test_retry_after_is_honoured(server):
    server.script(lambda exchange: exchange.send(503, b"", Retry_After="1"), lambda exchange: exchange.json({}))
    started = time.monotonic()
    Transport(server.url).get("/info")
    assert time.monotonic() - started >= 1


def test_retry_after_may_be_a_date_and_has_a_limit():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < (retry.retry_after({"retry-after": soon}) or 0) <= 30
    assert retry.retry_after({"retry-after": "86400"}) == retry.LONGEST_RETRY_AFTER
    assert retry.retry_after({"retry-after": "soon"}) is None
    assert retry.retry_after({}) is None


def test_patience_ends(server):
    server.script(lambda exchange: exchange.send(503, b""))
    with refused("server.not_ready"):
        Transport(server.url).get("/info")
    assert len(server.requests) == retry.ATTEMPTS


def test_a_dropped_connection_is_tried_again(server):
    server.script(lambda exchange: exchange.drop(), lambda exchange: exchange.json({"ok": True}))
    assert Transport(server.url).get("/info") == {"ok": True}


def test_a_truncated_answer_is_tried_again(server):
    server.script(lambda exchange: exchange.send(200, b'{"ok"', announced=50), lambda exchange: exchange.json({"a": 1}))
    assert Transport(server.url).get("/info") == {"a": 1}


def test_every_byte_of_every_body_is_counted_also_of_what_was_refused_or_sent_again(server):
    server.script(
        lambda exchange: exchange.json(PROBLEM, 503),
        lambda exchange: exchange.json({"ok": True}),
        lambda exchange: exchange.json(PROBLEM, 404),
    )
    transport = Transport(server.url)
    transport.request("PUT", "/x", content=b"x" * 100_000)
    with pytest.raises(FerretError):
        transport.get("/y")
    assert [len(request.body) for request in server.requests] == [100_000, 100_000, 0]
    problem, ok = len(json.dumps(PROBLEM)), len(json.dumps({"ok": True}))
    assert (transport.traffic.up, transport.traffic.down) == (200_000, 2 * problem + ok)


@pytest.mark.heavy
def test_what_was_sent_is_gone_with_its_answer_and_waits_for_no_garbage_collector(server):
    transport = Transport(server.url)
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            transport.request("PUT", "/x", content=bytes(1 << 20))
        left = [each for each in gc.get_objects() if type(each) in (httpx.Request, httpx.Response)]
    finally:
        gc.enable()
    assert left == []


def test_a_post_that_could_do_harm_is_sent_once(server):
    server.script(lambda exchange: exchange.drop())
    with refused("server.unreachable"):
        Transport(server.url).post("/participants", {"code": "c"})
    assert len(server.requests) == 1


def test_a_post_with_an_idempotency_key_is_repeated_with_the_same_key(server):
    server.script(lambda exchange: exchange.drop(), lambda exchange: exchange.json({}, 202))
    Transport(server.url).post("/experiments", {"name": "x"}, headers={"Idempotency-Key": "k"})
    assert [request.headers["idempotency-key"] for request in server.requests] == ["k", "k"]
    assert server.requests[1].body == b'{"name": "x"}'


def test_nobody_listening_is_unreachable_and_says_what_to_do():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with refused("server.unreachable", "check the address") as raised:
        Transport(f"http://127.0.0.1:{port}").get("/info")
    assert f"127.0.0.1:{port}" in raised.value.detail


def test_a_proxy_is_not_asked_for_this_machine(server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert Transport(server.url).get("/info") == {}


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8765", True),
        ("http://localhost", True),
        ("http://[::1]:80", True),
        ("https://ferret.example.org", False),
        ("http://10.0.0.1", False),
    ],
)
def test_loopback(url, here):
    assert is_loopback(url) is here
