"""The example of each request body is one that the service takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from starlette.testclient import TestClient

from ferret_api.app import create_app
from ferret_api.schemas import SPECIFICATION
from ferret_api.settings import ApiSettings
from ferret_core.protocol.roles import Role
from tests.api.conftest import Site, open_site
from tests.api.people import a_user

DOCUMENT = create_app(ApiSettings()).openapi()
ANSWERS = {
    "ask_model": "artifact.not_found",
    "change_password": "password.invalid",
    "change_user": "user.conflict",
    "create_oidc_session": "oidc.state_mismatch",
    "create_session": "password.invalid",
    "draw_example": "playground.unavailable",
    "enrol": "enrolment.other_server",
    "inspect_enrolment": "enrolment.other_server",
    "refuse_participant": "participant.conflict",
    "revoke_group_of_enrolments": "enrolment.not_found",
    "revoke_group_of_participants": "participant.not_found",
}
"""Problems of those whose example is well formed, but of people, codes and rounds that this service does not have."""


class Body(NamedTuple):
    """A request body in JSON as the document shows it."""

    id: str
    method: str
    path: str
    media_type: str
    schema: dict[str, Any]

    @property
    def examples(self) -> list[dict[str, Any]]:
        name = self.schema.get("$ref", "").rpartition("/")[2]
        return [
            *self.schema.get("examples", []),
            *DOCUMENT["components"]["schemas"].get(name, {}).get("examples", []),
        ]


BODIES = [
    Body(operation["operationId"], method.upper(), path, media_type, content["schema"])
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items()
    if media_type.endswith("json")
]


@pytest.fixture(scope="module")
def site(make_shared_settings: Callable[..., ApiSettings]) -> Iterator[Site]:
    """A service that has a provider to sign in with, and does not mind how often somebody shows a wrong credential."""
    provider = {"oidc_issuer": "http://127.0.0.1:1", "oidc_client_id": "ferret"}
    with open_site(make_shared_settings(failures_per_minute=10**6, **provider)) as opened:
        yield opened


@pytest.mark.parametrize("body", BODIES, ids=[body.id for body in BODIES])
def test_the_service_takes_the_example_and_would_have_refused_a_wrong_one(site: Site, body: Body) -> None:
    client, path = asked(site, body)
    headers = {"Content-Type": body.media_type}
    assert body.examples, f"{body.id} shows no example: give its class json_schema_extra, or its Body examples"
    for example in body.examples:
        wrong = client.request(body.method, path, json={**example, "nonsense": 1}, headers=headers)
        assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "nonsense"), "bodies are looked at"
        answer = client.request(body.method, path, json=example, headers=headers)
        code = answer.json().get("code") if answer.is_error else None
        assert code == ANSWERS.get(body.id), answer.text


def an_alert(site: Site) -> str:
    """The project's first: it cannot have one for each test."""
    if found := site.admin.get("/api/v1/projects/default/alerts").json()["items"]:
        return found[0]["id"]
    (create,) = (body for body in BODIES if body.id == "create_alert")
    created = site.admin.post(create.path.format(project="default"), json=create.examples[0])
    return created.raise_for_status().json()["id"]


def asked(site: Site, body: Body) -> tuple[TestClient, str]:
    """Who may ask with the body, and about what: a running experiment whose participant is at work."""
    changes: Any = {**SPECIFICATION, "participants": {"edge": 1}}
    experiment_id = site.running(**changes)
    member = site.client(site.enrol(experiment_id))
    (assignment_id,) = site.open_round(experiment_id, edge=["site-a"])
    member.get("/api/v1/participant/assignment").raise_for_status()
    user_id = "admin" if body.id == "change_user" else a_user(site, Role.VIEWER).id
    about = {"experiment_id": experiment_id, "assignment_id": assignment_id, "user_id": user_id}
    path = body.path.format(name="site-a", project="default", alert_id=an_alert(site), **about)
    return member if "/participant/" in path else site.admin, path
