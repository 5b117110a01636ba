"""Who may call what: a matrix over every operation of the OpenAPI document."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from ferret_api.app import create_app
from ferret_api.settings import ApiSettings


class Operation(NamedTuple):
    id: str
    method: str
    path: str
    callers: frozenset[str]


def _operations() -> list[Operation]:
    # Made without starting the service: the document needs neither database nor token.
    document = create_app(ApiSettings()).openapi()
    return [
        Operation(
            operation["operationId"],
            method.upper(),
            path,
            frozenset(name for scheme in operation.get("security", []) for name in scheme) or frozenset({"anyone"}),
        )
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


OPERATIONS = _operations()
OPEN = {"create_session", "enrol", "get_health", "get_readiness"}
PARTICIPANTS = {"next_assignment", "heartbeat", "upload_contribution", "report_failure"}
READABLE = {"get_experiment", "list_ledger", "get_update", "list_artifacts", "download_artifact"}


@pytest.fixture(scope="module")
def own(shared_site: Any) -> dict[str, Any]:
    """An experiment that is over, so that its event stream ends, and clients of everybody who may ask about it."""
    experiment_id, other_id = shared_site.running(), shared_site.running()
    tokens = {"participant": shared_site.enrol(experiment_id), "other": shared_site.enrol(other_id)}
    (assignment_id,) = shared_site.open_round(experiment_id, edge=["site-a"])
    shared_site.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    over = shared_site.browser()
    cookies = dict(over.cookies)
    over.delete("/api/v1/session").raise_for_status()
    over.cookies.update(cookies)
    clients = {
        "stranger": shared_site.client(),
        "guesser": shared_site.client("x" * 43),
        "admin": shared_site.admin,
        "session": shared_site.browser(),
        "session that is over": over,
        "session from elsewhere": elsewhere(shared_site),
        **{name: shared_site.client(token) for name, token in tokens.items()},
    }
    parameters = {"experiment_id": experiment_id, "assignment_id": assignment_id}
    # What is not over cannot be deleted, so that everybody's experiment stays.
    return {"clients": clients, "parameters": parameters, "delete_experiment": {"experiment_id": other_id}}


def elsewhere(site: Any) -> TestClient:
    """The signed-in browser, with the page of another server of this host open."""
    client = site.browser()
    client.headers["Origin"] = "http://testserver:8000"
    return client


def call(client: TestClient, operation: Operation, parameters: dict[str, str]) -> int:
    placeholders = {
        "kind": "datasets",
        "name": "jsonl",
        "number": "1",
        "round": "1",
        "artifact_id": "art_1",
        "enrolment_id": "enr_1",
    }
    path = operation.path.format(**{**placeholders, **parameters})
    if operation.method == "PUT":
        return client.put(path, content=b"", headers={"Content-Type": "application/octet-stream"}).status_code
    return client.request(operation.method, path, json={} if operation.method == "POST" else None).status_code


def test_the_document_opens_exactly_what_is_meant_to_be_open() -> None:
    callers = {operation.id: operation.callers for operation in OPERATIONS}
    assert {name for name, who in callers.items() if who == {"anyone"}} == OPEN
    assert {name for name, who in callers.items() if who == {"participant"}} == PARTICIPANTS
    assert {name for name, who in callers.items() if who == {"admin", "session", "participant"}} == READABLE
    assert set(callers.values()) == {
        frozenset({"anyone"}),
        frozenset({"participant"}),
        frozenset({"admin", "session"}),
        frozenset({"admin", "session", "participant"}),
    }


@pytest.mark.parametrize("operation", OPERATIONS, ids=[operation.id for operation in OPERATIONS])
def test_each_operation_lets_in_whom_the_document_names_and_nobody_else(own: Any, operation: Operation) -> None:
    for name, client in own["clients"].items():
        if operation.id == "delete_session" and name == "session":
            continue  # it would sign the browser out; see test_system.py
        status = call(client, operation, own.get(operation.id, own["parameters"]))
        if operation.callers == {"anyone"}:
            assert status not in {401, 403, 500}, name
        elif name in {"stranger", "guesser", "session that is over"}:
            assert status == 401, name
        elif name == "session from elsewhere" and "session" in operation.callers:
            reads = operation.method == "GET"  # whose answers the other page cannot read: there are no CORS headers
            assert (status not in {401, 403, 500}) if reads else (status == 403), name
        elif name == "other":
            # A participant of another experiment has an assignment of its own to ask for, but none of ours.
            allowed = {200} if operation.id == "next_assignment" else {404, 422}
            assert status in (allowed if operation.id in PARTICIPANTS else {403}), name
        elif name in operation.callers:
            assert status not in {401, 403, 500}, name
        else:
            assert status in ({401} if name.startswith("session") else {403}), name


def test_a_refusal_says_how_to_do_better(site: Any) -> None:
    answer = site.client().get("/api/v1/info")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["code"] == "auth.missing"
    assert "Authorization: Bearer" in answer.json()["detail"]
    assert site.client("x" * 43).get("/api/v1/info").json()["code"] == "auth.invalid"


def test_a_wrong_body_of_a_stranger_is_not_even_looked_at(site: Any) -> None:
    answer = site.client().post("/api/v1/experiments", json={"nonsense": True})
    assert answer.status_code == 401


def test_a_stranger_cannot_make_the_server_read_an_upload(site: Any) -> None:
    def body() -> Any:
        yield b"first"
        raise AssertionError("the server read on")

    answer = site.client().put(
        "/api/v1/participant/assignments/asg_1/contribution",
        content=body(),
        headers={"Content-Type": "application/octet-stream"},
    )
    assert answer.status_code == 401
