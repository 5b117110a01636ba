"""What PostgreSQL alone refuses is still the caller's mistake, not the server's."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from ferret_api.app import create_app

pytestmark = pytest.mark.postgresql
BODY: dict[str, Any] = {
    "name": "x",
    "model": {"source": "/m"},
    "dataset": {"name": "jsonl", "train": "/d"},
    "participants": {"simulated": 1},
}


@pytest.fixture(scope="module")
def url(postgresql: Any) -> Any:
    with postgresql(migrated=True) as url:
        yield url


@pytest.fixture
def admin(url: str, make_settings: Any) -> Any:
    settings = make_settings(database_url=url)
    with TestClient(create_app(settings), headers={"Authorization": f"Bearer {settings.admin_token}"}) as client:
        yield client


def test_an_experiment_is_submitted_found_and_cancelled(admin: TestClient) -> None:
    location = admin.post("/api/v1/experiments", json=BODY).headers["Location"]
    assert admin.get(location).json()["spec"]["dataset"]["train"] == "/d"
    assert admin.post(f"{location}:cancel").json()["state"] == "cancelled"
    assert admin.get("/api/v1/info").json()["database"] == "postgresql"
    assert admin.get("/readyz").json()["migrations"]["ready"]


def test_a_nul_character_is_dropped_from_a_name(admin: TestClient) -> None:
    answer = admin.post("/api/v1/experiments", json=BODY | {"name": "nul\x00"})
    assert (answer.status_code, answer.json()["name"]) == (202, "nul")


def test_a_nul_character_in_a_path_is_refused(admin: TestClient) -> None:
    answer = admin.post("/api/v1/experiments", json=BODY | {"dataset": {"name": "jsonl", "train": "/d\x00"}})
    assert (answer.status_code, answer.json()["code"]) == (422, "dataset.invalid")


@pytest.mark.parametrize("path", ["experiments/exp%00", "experiments?name=%00", "experiments/exp_1/artifacts/a%00"])
def test_a_nul_character_in_an_address_is_no_server_error(admin: TestClient, path: str) -> None:
    assert admin.get(f"/api/v1/{path}").status_code in {404, 422}
