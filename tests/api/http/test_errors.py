"""One error shape for everything that can go wrong."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import structlog
from starlette.testclient import TestClient

from ferret_core.protocol.errors import PROBLEMS, FerretError
from ferret_core.protocol.resources.base import Problem
from tests.api.conftest import document

MEMBERS = {name for name, field in Problem.model_fields.items() if field.is_required()}


def check_shape(answer: Any, code: str) -> dict[str, Any]:
    problem = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert set(problem) == MEMBERS
    assert problem["code"] == code
    assert problem["type"] == f"urn:ferret:problem:{code}"
    assert problem["title"] == PROBLEMS[code].title
    assert problem["status"] == answer.status_code == PROBLEMS[code].status
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    assert problem["detail"]
    return problem


@pytest.mark.parametrize("code", sorted(PROBLEMS))
def test_every_code_is_rendered_with_its_status(site: Any, code: str) -> None:
    @site.app.get("/api/v1/broken")
    def broken() -> None:
        raise FerretError.of_field(code, "field", 3, "is wrong: use 4")

    problem = check_shape(site.client().get("/api/v1/broken"), code)
    assert problem["errors"] == [{"field": "field", "value": 3, "message": "is wrong: use 4"}]
    assert problem["instance"] == "/api/v1/broken"


def test_an_unexpected_exception_is_logged_under_the_request_id_and_tells_nothing(
    site: Any, caplog: pytest.LogCaptureFixture
) -> None:
    requests: list[str] = []

    def note(record: logging.LogRecord) -> bool:
        requests.append(structlog.contextvars.get_contextvars().get("request", ""))
        return True

    @site.app.get("/api/v1/broken")
    def broken() -> None:
        raise ZeroDivisionError("secret of the house")

    logging.getLogger("ferret_api.http.middleware").addFilter(note)
    try:
        answer = site.client().get("/api/v1/broken")
    finally:
        logging.getLogger("ferret_api.http.middleware").removeFilter(note)
    problem = check_shape(answer, "internal")
    assert "secret of the house" not in answer.text
    assert requests == [problem["request_id"]], "the log's line carries the id that the answer names"
    assert "secret of the house" in caplog.text


def test_an_unknown_address(site: Any) -> None:
    assert "/api/v1/nowhere" in check_shape(site.admin.get("/api/v1/nowhere"), "route.not_found")["detail"]
    check_shape(site.admin.post("/api/v1/nowhere"), "route.not_found")
    check_shape(site.admin.get("/api/v1/nowhere", headers={"Accept": "text/html"}), "route.not_found")


@pytest.mark.parametrize(
    ("body", "media_type", "advice"),
    [(b'{"name": ', "application/json", "is not JSON"), (b"name=x", "text/plain", "Content-Type: application/json")],
)
def test_a_body_that_is_not_json(site: Any, body: bytes, media_type: str, advice: str) -> None:
    answer = site.admin.post("/api/v1/experiments", content=body, headers={"Content-Type": media_type})
    assert advice in check_shape(answer, "spec.invalid")["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"seed": NaN, "rounds": Infinity}',
        b'{"name": "\\ud800"}',
        b'{"seed": 1' + b"0" * 400 + b"}",
        b'{"name": ' + b"[" * 31 + b"]" * 31 + b"}",
        b"[]",
        b"null",
        b'"text"',
        b"",
    ],
)
def test_no_body_breaks_the_server(site: Any, body: bytes) -> None:
    answer = site.admin.post("/api/v1/experiments", content=body, headers={"Content-Type": "application/json"})
    check_shape(answer, "spec.invalid")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("experiments?limit=0", "limit"),
        ("experiments?limit=many", "limit"),
        ("experiments?state=asleep", "state.0"),
        ("experiments/exp_1/rounds/0", "number"),
        (f"experiments/exp_1/rounds/{2**70}", "number"),
        (f"experiments/exp_1/events?after={2**70}", "after"),
        (f"experiments/{'x' * 65}", "experiment_id"),
        ("catalog/moods", "kind"),
    ],
)
def test_a_wrong_parameter_is_named(site: Any, path: str, field: str) -> None:
    problem = check_shape(site.admin.get(f"/api/v1/{path}"), "request.invalid")
    assert problem["errors"][0]["field"] == field


def test_a_wrong_header_of_a_submission_is_no_fault_of_its_specification(site: Any) -> None:
    answer = site.admin.post("/api/v1/experiments", json=document(), headers={"Idempotency-Key": "k" * 201})
    assert check_shape(answer, "request.invalid")["errors"][0]["field"] == "Idempotency-Key"


def test_a_request_keeps_a_sensible_id_and_loses_any_other(site: Any) -> None:
    client: TestClient = site.client()
    kept = client.get("/healthz", headers={"X-Request-ID": "trace-0123.abc"})
    assert kept.headers["X-Request-ID"] == "trace-0123.abc"
    lost = client.get("/healthz", headers={"X-Request-ID": "a line\tbreak and <b>more</b>"})
    assert len(lost.headers["X-Request-ID"]) == 16


def test_a_database_that_fails_is_503_with_a_hint(site: Any) -> None:
    site.database.dispose()
    for file in site.context.settings.home.glob("ferret.db*"):
        file.unlink()
    answer = site.admin.get("/api/v1/experiments")
    check_shape(answer, "server.not_ready")
    assert answer.headers["Retry-After"] == "5"
    assert "ferret migrate" in site.admin.get("/readyz").json()["migrations"]["detail"]
