"""Who may call what: a matrix over every operation of the OpenAPI document and everybody who may call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from ferret_api.app import create_app
from ferret_api.settings import ApiSettings
from ferret_core.protocol.roles import Role, Scope
from tests.api.conftest import ADMIN as ADMIN_TOKEN
from tests.api.conftest import NO_BROKER, TEST_HOST, Site, make_home, open_site
from tests.api.people import a_user

USERS = frozenset(role.value for role in Role)
ANYONE = frozenset({"anyone"})
PARTICIPANT = frozenset({"participant"})
ADMIN = frozenset({"admin"})
RESEARCHERS = ADMIN | {"researcher"}
UNKNOWN = {"stranger", "guesser", "session that is over", "disabled", "expired", "revoked"}
NOT_ASKED = {
    # The session that it opens could read too; see test_sessions.py.
    ("create_sign_in_link", "admin who may only write"),
    # It would sign the browser out; see test_system.py.
    ("delete_session", "session"),
    ("delete_session", "viewer's session"),
}


class Operation(NamedTuple):
    id: str
    method: str
    path: str
    roles: frozenset[str]
    schemes: frozenset[str]

    @property
    def scope(self) -> Scope:
        return Scope.READ if self.method in {"GET", "HEAD"} or self.id in READ_BY_POST else Scope.WRITE


def _operations() -> list[Operation]:
    # Made without starting the service: the document needs neither database nor token.
    document = create_app(ApiSettings()).openapi()
    return [
        Operation(
            operation["operationId"],
            method.upper(),
            path,
            frozenset(operation.get("x-ferret-roles", ())),
            frozenset(name for scheme in operation.get("security", []) for name in scheme),
        )
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


OPERATIONS = _operations()
OUTSIDERS = ("member of no project", "member of another project")
READ_BY_POST = {"ask_model", "draw_example"}
"""What is asked stands in the body, not in an address that logs keep."""
NEEDS_PARTS = {"get_readiness", "draw_example"}
"""Here is neither a broker nor a worker."""
BODIES = {
    "change_alert": {"enabled": False},
    "create_alert": {"kind": "webhook", "address": "https://hooks.example.org/ferret"},
    "ask_model": {"question": "Repeat."},
    "edit_experiment": {"notes": "seen"},
    "extend_experiment": {"rounds": 1},
    "plan_draft": {"spec": {}},
    "revise_draft": {"spec": {}},
    "revoke_group_of_enrolments": {"group": "north"},
    "revoke_group_of_participants": {"group": "north"},
}
"""Of operations that refuse an empty one, or do nothing for it."""
OPEN = {
    "begin_oidc_session",
    "create_oidc_session",
    "create_session",
    "get_sign_in",
    "enrol",
    "get_health",
    "get_readiness",
}
PARTICIPANTS = {
    "next_assignment",
    "heartbeat",
    "upload_contribution",
    "upload_part",
    "get_arrived",
    "report_failure",
}
READABLE = {
    "get_experiment",
    "list_ledger",
    "get_receipt",
    "get_update",
    "head_update",
    "list_artifacts",
    "download_artifact",
    "head_artifact",
}


class Client(NamedTuple):
    """Somebody with a credential: ``role`` is what it stands for, None where it is good for nothing."""

    client: TestClient
    role: str | None
    scopes: frozenset[Scope] = frozenset(Scope)


@pytest.fixture(scope="module")
def patient_site(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Site]:
    """One that does not mind how often somebody shows what is good for nothing."""
    settings = ApiSettings(
        home=make_home(tmp_path_factory.mktemp("matrix"), migrated),
        broker_url=NO_BROKER,
        admin_token=ADMIN_TOKEN,
        allowed_hosts=TEST_HOST,
        failures_per_minute=10**6,
    )
    with open_site(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def own(patient_site: Site) -> dict[str, Any]:
    """An experiment that is over, so that its event stream ends, and clients of everybody who may ask about it."""
    site = patient_site
    experiment_id, other_id = site.running(), site.running()
    tokens = {"participant": site.enrol(experiment_id), "other": site.enrol(other_id)}
    pending = site.enrol(experiment_id, "site-p", approval=True)
    (assignment_id,) = site.open_round(experiment_id, edge=["site-a"])
    site.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    over = site.browser()
    cookies = dict(over.cookies)
    over.delete("/api/v1/session").raise_for_status()
    over.cookies.update(cookies)
    clients = {
        "stranger": Client(site.client(), None),
        "guesser": Client(site.client("x" * 43), None),
        "admin token": Client(site.admin, "admin"),
        "session": Client(site.browser(), "admin"),
        "session that is over": Client(over, None),
        "session from elsewhere": Client(elsewhere(site), "admin"),
        **outsiders(site),
        **{name: Client(site.client(token), "participant") for name, token in tokens.items()},
        "pending": Client(site.client(pending), "participant"),
        **people(site),
    }
    parameters = {"experiment_id": experiment_id, "assignment_id": assignment_id}
    # What is not over cannot be deleted, so that everybody's experiment stays.
    return {"clients": clients, "parameters": parameters, "delete_experiment": {"experiment_id": other_id}}


def outsiders(site: Any) -> dict[str, Client]:
    """Researchers who do not see the project: one sees none, one another, with an experiment of its own."""
    site.admin.post("/api/v1/projects", json={"name": "elsewhere"}).raise_for_status()
    site.submit(project="elsewhere")
    projects = dict(zip(OUTSIDERS, (None, "elsewhere"), strict=True))
    return {name: Client(a_user(site, Role.RESEARCHER, seen).client, "researcher") for name, seen in projects.items()}


def people(site: Any) -> dict[str, Client]:
    """A user of each role by token, one token for each scope alone, and tokens that are good no more."""
    found = {role.value: Client(a_user(site, role).client, role.value) for role in Role}
    viewer = a_user(site, Role.VIEWER)
    found["viewer's session"] = Client(viewer.browser(), "viewer")
    admin = a_user(site, Role.ADMIN)
    for scope in Scope:
        found[f"admin who may only {scope}"] = Client(admin.with_token([scope]), "admin", frozenset({scope}))
    disabled, expired, revoked = (a_user(site, Role.ADMIN) for _ in range(3))
    disabled.change(enabled=False)
    expired.expire()
    revoked.revoke()
    gone = {"disabled": disabled, "expired": expired, "revoked": revoked}
    return found | {name: Client(person.client, None) for name, person in gone.items()}


def elsewhere(site: Any) -> TestClient:
    """The signed-in browser, with the page of another server of this host open."""
    client = site.browser()
    client.headers["Origin"] = "http://testserver:8000"
    return client


def is_owned(operation: Operation) -> bool:
    """Whether it is about one experiment or project: its members' alone."""
    return "{experiment_id}" in operation.path or "{project}" in operation.path


def call(client: TestClient, operation: Operation, parameters: dict[str, str]) -> int:
    placeholders = {
        "kind": "datasets",
        "name": "jsonl",
        "number": "1",
        "participant": "site-a",
        "round": "1",
        "artifact_id": "art_1",
        "alert_id": "alr_1",
        "enrolment_id": "enr_1",
        "user_id": "usr_1",
        "project": "default",
        "token_id": "tok_1",
    }
    path = operation.path.format(**{**placeholders, **parameters})
    if operation.id == "upload_contribution":
        return client.put(path, content=b"", headers={"Content-Type": "application/octet-stream"}).status_code
    body = None if operation.method in {"GET", "HEAD", "DELETE"} else BODIES.get(operation.id, {})
    return client.request(operation.method, path, json=body).status_code


@pytest.mark.parametrize("operation", OPERATIONS, ids=[operation.id for operation in OPERATIONS])
def test_each_operation_has_a_rule(operation: Operation) -> None:
    assert operation.roles, (
        f"{operation.id} has no rule of ferret_api.auth: add one, such as `dependencies=[AdminOnly]`"
    )
    assert operation.schemes == {
        ANYONE: frozenset(),
        PARTICIPANT: {"participant"},
        USERS | PARTICIPANT: {"user", "session", "participant"},
    }.get(operation.roles, {"user", "session"})


def test_the_document_opens_exactly_what_is_meant_to_be_open() -> None:
    roles = {operation.id: operation.roles for operation in OPERATIONS}
    assert {name for name, who in roles.items() if who == ANYONE} == OPEN
    assert {name for name, who in roles.items() if who == PARTICIPANT} == PARTICIPANTS
    assert {name for name, who in roles.items() if who == USERS | PARTICIPANT} == READABLE
    assert set(roles.values()) == {ANYONE, PARTICIPANT, USERS | PARTICIPANT, USERS, RESEARCHERS, ADMIN}
    changing = {each.id for each in OPERATIONS if each.roles == USERS and each.scope == Scope.WRITE}
    own = {"create_sign_in_link", "delete_session", "create_token", "revoke_token", "change_password"}
    assert changing == own, "a viewer only looks"
    assert {name for name in roles if is_administrators(name)} == {n for n, who in roles.items() if who == ADMIN}


def is_administrators(name: str) -> bool:
    """Whether the operation is about users, the audit log, the whole service, or changing a project or its members."""
    changes_project = ("project" in name or "member" in name) and not name.startswith(("get_", "list_"))
    return "user" in name or "audit" in name or name == "get_system" or changes_project


@pytest.mark.parametrize("operation", OPERATIONS, ids=[operation.id for operation in OPERATIONS])
def test_each_operation_lets_in_whom_the_document_names_and_nobody_else(own: Any, operation: Operation) -> None:
    for name, (client, role, scopes) in own["clients"].items():
        if (operation.id, name) in NOT_ASKED:
            continue
        status = call(client, operation, own.get(operation.id, own["parameters"]))
        assert status < 500 or operation.id in NEEDS_PARTS, name
        if operation.roles == ANYONE:
            assert status not in {401, 403}, name
        elif role is None:
            assert status == 401, name
        elif name == "pending":
            assert status == (200 if operation.id == "next_assignment" else 403), name
        elif name == "other":
            # A participant of another experiment has an assignment of its own to ask for, but none of ours.
            allowed = {200} if operation.id == "next_assignment" else {404, 422}
            assert status in (allowed if operation.id in PARTICIPANTS else {403}), name
        elif name in OUTSIDERS and role in operation.roles and is_owned(operation):
            assert status == 404, name
        elif "session" in name and operation.roles == PARTICIPANT:
            assert status == 401, name
        elif name == "session from elsewhere" and operation.method not in {"GET", "HEAD"}:
            assert status == 403, name  # what it reads the other page cannot see: there are no CORS headers
        elif role in operation.roles and (role == "participant" or operation.scope in scopes):
            assert status not in {401, 403}, name
        else:
            assert status == 403, name


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
