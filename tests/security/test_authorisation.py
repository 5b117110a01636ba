"""Who may call what: a matrix over every operation of the OpenAPI document and everybody who may call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from ferret_api.app import create_app
from ferret_api.settings import ApiSettings
from ferret_core.protocol.roles import EVERY_SCOPE, Role, Scope
from tests.api.conftest import Site, open_site
from tests.api.people import a_user

VIEWERS = frozenset(role.value for role in Role)
ANYONE = frozenset({"anyone"})
PARTICIPANT = frozenset({"participant"})
ADMIN = frozenset({"admin"})
RESEARCHERS = ADMIN | {"researcher"}

WHO: dict[frozenset[str], set[str]] = {
    ANYONE: {
        "begin_oidc_session", "create_oidc_session", "create_session", "enrol", "get_health", "get_readiness",
        "get_sign_in", "inspect_enrolment",
    },
    PARTICIPANT: {
        "get_arrived", "heartbeat", "next_assignment", "report_failure", "upload_contribution", "upload_part",
        "get_shares", "put_prekeys", "put_shares", "put_survivors", "put_unmask",
    },
    VIEWERS | PARTICIPANT: {
        "get_masked_vector", "list_transcripts",
        "download_artifact", "get_experiment", "get_receipt", "get_update", "head_artifact", "head_update",
        "list_artifacts", "list_ledger",
    },
    VIEWERS: {
        "ask_model", "change_password", "create_sign_in_link", "create_token", "delete_session",
        "end_session", "get_catalog_entry", "get_info", "get_me", "get_metrics", "get_participation",
        "get_project", "get_prometheus_metrics", "get_round", "get_round_update", "list_alerts",
        "list_catalog", "list_contributions", "list_events", "list_experiment_groups", "list_experiments",
        "list_members", "list_participants", "list_presets", "list_projects", "list_rejections",
        "list_rounds", "list_rounds_of_participant", "list_sessions", "list_tokens", "revoke_token",
        "stream_events",
    },
    RESEARCHERS: {
        "approve_participant", "archive_experiment", "cancel_experiment", "change_alert", "clone_experiment",
        "create_alert", "create_enrolment", "delete_alert", "delete_experiment", "draw_example",
        "edit_experiment", "extend_experiment", "list_enrolments", "pause_experiment", "plan_draft",
        "refuse_participant", "resume_experiment", "revise_draft", "revoke_enrolment",
        "revoke_group_of_enrolments", "revoke_group_of_participants", "revoke_participant",
        "submit_experiment", "test_alert", "unarchive_experiment",
    },
    ADMIN: {
        "add_member", "change_project", "change_user", "create_project", "create_user", "create_user_token",
        "delete_project", "end_user_session", "get_audit_head", "get_system", "list_audit",
        "list_user_sessions", "list_user_tokens", "list_users", "remove_member", "revoke_user_token",
    },
}  # fmt: skip
"""Who may call which operation. A new operation is entered here, or the tests fail."""
MAY = {operation: who for who, operations in WHO.items() for operation in operations}

IDENTITIES = {
    "stranger",
    "expired token",
    "revoked token",
    "disabled user",
    "member of another project",
    "member of no project",
    "viewer",
    "read-only scope",
    "write-only scope",
    "researcher",
    "admin",
    "own participant",
    "participant of another experiment",
    "sibling participant",
    "revoked participant",
    "user whose session ended",
}
"""Each is asked of every operation; the fixture has a few more."""
OUTSIDERS = ("member of no project", "member of another project")
READ_BY_POST = {"ask_model", "draw_example"}
"""Their questions are in the body, not in an address that logs keep."""
NEED_EVERY_SCOPE = {"create_sign_in_link"}
"""The session that it opens has every scope."""
NEEDS_PARTS = {"get_readiness", "ask_model", "draw_example"}
"""There is neither a broker nor a worker here."""
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
ABSENT = {"get_round_update", "get_arrived", "get_masked_vector", "get_shares"}
"""Readers get no 200 where the fixture has nothing to read."""


class Operation(NamedTuple):
    id: str
    method: str
    path: str
    roles: frozenset[str]
    schemes: frozenset[str]

    @property
    def scope(self) -> Scope:
        if self.id == "get_prometheus_metrics":
            return Scope.METRICS
        return Scope.READ if self.reads or self.id in READ_BY_POST else Scope.WRITE

    @property
    def reads(self) -> bool:
        return self.method in {"GET", "HEAD"}

    @property
    def is_owned(self) -> bool:
        """Whether it is about one experiment or project: its members' alone."""
        return "{experiment_id}" in self.path or "{project}" in self.path


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


class Client(NamedTuple):
    """Somebody with a credential: ``role`` is what it stands for, None where it is good for nothing."""

    client: TestClient
    role: str | None
    scopes: frozenset[Scope] = EVERY_SCOPE


@pytest.fixture(scope="module")
def patient_site(make_shared_settings: Callable[..., ApiSettings]) -> Iterator[Site]:
    """One that does not mind how often somebody shows what is good for nothing."""
    with open_site(make_shared_settings(failures_per_minute=10**6)) as opened:
        yield opened


@pytest.fixture(scope="module")
def own(patient_site: Site) -> dict[str, Any]:
    """An experiment that is over, so that its event stream ends, and clients of everybody who may ask about it."""
    site = patient_site
    experiment_id, other_id = site.running(), site.running()
    site.committed(experiment_id, files=[site.store("config.json", b"{}")])
    tokens = {
        "own participant": site.enrol(experiment_id, "site-a"),
        "sibling participant": site.enrol(experiment_id, "site-b"),
        "participant of another experiment": site.enrol(other_id, "site-a"),
        "pending participant": site.enrol(experiment_id, "site-p", approval=True),
        "revoked participant": site.enrol(experiment_id, "site-r"),
    }
    (assignment_id,) = site.open_round(experiment_id, edge=["site-a"], number=2)
    site.admin.post(f"/api/v1/experiments/{experiment_id}/participants/site-r:revoke", json={}).raise_for_status()
    site.admin.post(f"/api/v1/experiments/{experiment_id}:cancel").raise_for_status()
    (artifact,) = site.admin.get(f"/api/v1/experiments/{experiment_id}/artifacts").json()["items"]
    clients = {
        "stranger": Client(site.client(), None),
        "guesser": Client(site.client("x" * 43), None),
        "admin token": Client(site.admin, "admin"),
        "session": Client(site.browser(), "admin"),
        "session from elsewhere": Client(elsewhere(site), "admin"),
        **outsiders(site),
        **{name: Client(site.client(token), "participant") for name, token in tokens.items()},
        **people(site),
    }
    assert clients.keys() >= IDENTITIES
    parameters = {"experiment_id": experiment_id, "assignment_id": assignment_id, "artifact_id": artifact["id"]}
    return {
        "clients": clients,
        "parameters": parameters,
        # What is not over cannot be deleted, so that everybody's experiment stays.
        "delete_experiment": {"experiment_id": other_id},
    }


def outsiders(site: Any) -> dict[str, Client]:
    """Researchers who do not see the project: one sees none, one another, with an experiment of its own."""
    site.admin.post("/api/v1/projects", json={"name": "elsewhere"}).raise_for_status()
    site.submit(project="elsewhere")
    projects = dict(zip(OUTSIDERS, (None, "elsewhere"), strict=True))
    return {name: Client(a_user(site, Role.RESEARCHER, seen).client, "researcher") for name, seen in projects.items()}


def people(site: Any) -> dict[str, Client]:
    """A user of each role by token, one token for each scope alone, and credentials that are good no more."""
    found = {role.value: Client(a_user(site, role).client, role.value) for role in Role}
    found["viewer's session"] = Client(a_user(site, Role.VIEWER).browser(), "viewer")
    admin = a_user(site, Role.ADMIN)
    for scope in Scope:
        found[f"{scope}-only scope"] = Client(admin.with_token([scope]), "admin", frozenset({scope}))
    disabled, expired, revoked = (a_user(site, Role.ADMIN) for _ in range(3))
    disabled.change(enabled=False)
    expired.expire()
    revoked.revoke()
    over = a_user(site, Role.ADMIN).browser()
    cookies = dict(over.cookies)
    over.delete("/api/v1/session").raise_for_status()
    over.cookies.update(cookies)
    gone = {"disabled user": disabled.client, "expired token": expired.client, "revoked token": revoked.client}
    gone["user whose session ended"] = over
    return found | {name: Client(client, None) for name, client in gone.items()}


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
        "participant": "client-001",
        "round": "1",
        "alert_id": "alr_1",
        "enrolment_id": "enr_1",
        "user_id": "admin" if operation.reads else "usr_1",
        "project": "default",
        "session_id": "ses_1",
        "token_id": "tok_1",
    }
    path = operation.path.format(**{**placeholders, **parameters})
    if operation.id == "upload_contribution":
        return client.put(path, content=b"", headers={"Content-Type": "application/octet-stream"}).status_code
    body = None if operation.reads or operation.method == "DELETE" else BODIES.get(operation.id, {})
    return client.request(operation.method, path, json=body).status_code


def refusal(name: str, caller: Client, operation: Operation) -> int | set[int] | None:
    """The status with which the operation refuses the caller, or those of which it is one; None: it lets it in."""
    who, is_session = MAY[operation.id], "session" in name
    if who == ANYONE:
        return None
    if caller.role is None or (is_session and who == PARTICIPANT):
        return 401
    if name == "session from elsewhere" and not operation.reads:
        return 403  # it reads nothing of an answer either: there are no CORS headers
    if name == "revoked participant" or caller.role not in who:
        return 403
    if caller.role == "participant":
        return participants_refusal(name, operation)
    if not operation.scope.within(caller.scopes) or (operation.id in NEED_EVERY_SCOPE and len(caller.scopes) == 1):
        return 403
    return 404 if name in OUTSIDERS and operation.is_owned else None


def participants_refusal(name: str, operation: Operation) -> int | set[int] | None:
    if name == "own participant" or operation.id == "next_assignment":
        return None
    if name == "pending participant":
        return 403
    if MAY[operation.id] == PARTICIPANT:
        return {404, 422}  # the assignment is another's
    return 403 if name == "participant of another experiment" else None


def is_right(name: str, caller: Client, operation: Operation, status: int) -> bool:
    expected = refusal(name, caller, operation)
    if expected is not None:
        return status == expected if isinstance(expected, int) else status in expected
    if status >= 500:
        return operation.id in NEEDS_PARTS
    return status not in {401, 403} and (status == 200 or not operation.reads or operation.id in ABSENT)


@pytest.mark.parametrize("operation", OPERATIONS, ids=[operation.id for operation in OPERATIONS])
def test_each_operation_lets_in_whom_the_table_names_and_nobody_else(
    own: Any, patient_site: Site, operation: Operation
) -> None:
    wrong: dict[str, int] = {}
    for name, caller in own["clients"].items():
        if operation.id == "delete_session" and name == "session":
            caller = Client(patient_site.browser(), "admin")  # it is signed out
        elif operation.id == "delete_session" and name == "viewer's session":
            caller = Client(a_user(patient_site, Role.VIEWER).browser(), "viewer")
        status = call(caller.client, operation, own.get(operation.id, own["parameters"]))
        if not is_right(name, caller, operation, status):
            wrong[name] = status
    assert wrong == {}


def test_the_table_names_every_operation_once_and_the_document_agrees() -> None:
    """Who adds an operation says in ``WHO`` for whom it is."""
    assert sum(map(len, WHO.values())) == len(MAY)
    assert {operation.id: operation.roles for operation in OPERATIONS} == MAY
    assert len(IDENTITIES) == 16


@pytest.mark.parametrize("operation", OPERATIONS, ids=[operation.id for operation in OPERATIONS])
def test_each_operation_takes_the_credentials_of_those_whom_it_lets_in(operation: Operation) -> None:
    assert operation.schemes == {
        ANYONE: frozenset(),
        PARTICIPANT: {"participant"},
        VIEWERS | PARTICIPANT: {"user", "session", "participant"},
    }.get(MAY[operation.id], {"user", "session"})


def test_a_viewer_changes_nothing_but_what_is_its_own() -> None:
    changing = {
        operation.id for operation in OPERATIONS if operation.roles == VIEWERS and operation.scope == Scope.WRITE
    }
    own = {"create_sign_in_link", "delete_session", "end_session", "create_token", "revoke_token", "change_password"}
    assert changing == own


def test_a_refusal_says_how_to_do_better(site: Any) -> None:
    answer = site.client().get("/api/v1/info")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["code"] == "auth.missing"
    assert "Authorization: Bearer" in answer.json()["detail"]
    assert site.client("x" * 43).get("/api/v1/info").json()["code"] == "auth.invalid"


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
