"""Headers that bind browsers: on whatever the service answers, from whichever part of it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from ferret_api.http.dashboard import STATIC
from tests.api.conftest import ADMIN, bearer
from tests.security.test_connections import Peer

EVERYWHERE = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
ASSET = next(path.name for path in (STATIC / "assets").glob("*.js"))
OPENAPI = "/api/v1/openapi.json"


def policy(headers: Any) -> dict[str, str]:
    """Sources by directive."""
    parts = headers["Content-Security-Policy"].split("; ")
    return {name: sources for name, _, sources in (part.partition(" ") for part in parts)}


def check(headers: Any) -> None:
    assert {name: headers.get(name) for name in EVERYWHERE} == EVERYWHERE
    assert "camera=()" in headers["Permissions-Policy"]
    assert policy(headers)["default-src"] == "'none'"
    assert policy(headers)["frame-ancestors"] == "'none'"
    assert policy(headers)["base-uri"] == "'none'"
    assert "unsafe" not in headers["Content-Security-Policy"]


@pytest.fixture(scope="module")
def experiment_id(shared_site: Any) -> str:
    return shared_site.running()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/info", 200),
        ("GET", "/api/v1/experiments/{id}", 200),
        ("POST", "/api/v1/experiments/{id}:pause", 200),
        ("GET", "/api/v1/audit", 200),
        ("GET", OPENAPI, 200),
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 503),
        ("GET", "/metrics", 200),
        ("HEAD", "/api/v1/info", 405),
        ("GET", "/api/v1/experiments/exp_none", 404),
        ("POST", "/api/v1/experiments", 422),
        ("PUT", "/api/v1/info", 405),
        ("OPTIONS", "/api/v1/info", 405),
        ("GET", "/api/v1/nowhere", 404),
        ("DELETE", "/", 405),
        ("GET", "/assets/none.js", 404),
    ],
)
def test_answers_of_the_api_bind_the_browser_and_are_not_stored(
    shared_site: Any, experiment_id: str, method: str, path: str, status: int
) -> None:
    answer = shared_site.admin.request(method, path.format(id=experiment_id))
    assert answer.status_code == status
    check(answer.headers)
    assert policy(answer.headers).keys() == {"default-src", "base-uri", "form-action", "frame-ancestors"}
    assert answer.headers["Cache-Control"] == "no-store"


def test_answers_with_secrets_are_not_stored(shared_site: Any) -> None:
    experiment_id = shared_site.running(participants={"edge": 1})
    code = shared_site.admin.post(f"/api/v1/experiments/{experiment_id}/enrolments", json={})
    enrolled = shared_site.client().post(
        "/api/v1/participants", json={"code": code.json()["code"], "display_name": "site-a"}
    )
    signed_in = shared_site.client().post("/api/v1/session", json={"token": ADMIN})
    for answer in (code, enrolled, signed_in):
        assert answer.is_success
        check(answer.headers)
        assert answer.headers["Cache-Control"] == "no-store"


def test_refusals_before_routing_bind_the_browser(shared_site: Any) -> None:
    unknown = shared_site.client().get("/", headers={"Host": "evil.example"})
    foreign = shared_site.client("x" * 43).get("/api/v1/info")
    large = shared_site.admin.post("/api/v1/experiments", content=b" " * (2 << 20))
    assert [answer.status_code for answer in (unknown, foreign, large)] == [421, 401, 413]
    for answer in (unknown, foreign, large):
        check(answer.headers)
        assert answer.headers["Cache-Control"] == "no-store"


def test_an_error_that_nobody_expected_binds_the_browser(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("ferret_api.routers.audit.audit.head", fail)
    with TestClient(site.app, headers=bearer(ADMIN), raise_server_exceptions=False) as client:
        answer = client.get("/api/v1/audit/head")
    assert answer.status_code == 500
    check(answer.headers)
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/experiments", f"/assets/{ASSET}", "/favicon.svg"])
def test_the_dashboard_runs_what_this_server_sends_and_nothing_else(shared_site: Any, path: str) -> None:
    answer = shared_site.client().get(path)
    unchanged = shared_site.client().get(path, headers={"If-None-Match": answer.headers["ETag"]})
    assert [answer.status_code, unchanged.status_code] == [200, 304]
    for each in (answer, unchanged):
        check(each.headers)
        sources = policy(each.headers)
        assert {sources[name] for name in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
        assert each.headers["Cache-Control"] != "no-store", "files of the dashboard may be kept"


@pytest.mark.parametrize(
    ("said", "status"), [(b"this is no HTTP\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ", 408)]
)
def test_what_never_became_a_request_is_answered_alike(
    serve: Any, make_settings: Any, said: bytes, status: int
) -> None:
    with Peer(serve(make_settings(header_seconds=0.5)).port) as peer:
        peer.send(said)
        head, _, body = peer.rest().decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    assert first.split()[1] == str(status)
    check(httpx.Headers([tuple(line.split(": ", 1)) for line in lines]))
    assert body
    assert status == 400 or json.loads(body)["code"] == "request.timeout"
