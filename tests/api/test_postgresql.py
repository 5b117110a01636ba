"""What PostgreSQL alone refuses is still the caller's mistake, not the server's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ferret_api.settings import ApiSettings
from tests.api.conftest import document, open_site

pytestmark = pytest.mark.postgresql
URL = "/api/v1/experiments"


@pytest.fixture
def admin(migrated_postgresql: str, make_settings: Callable[..., ApiSettings]) -> Iterator[Any]:
    with open_site(make_settings(database_url=migrated_postgresql)) as site:
        yield site.admin


def test_a_nul_character_is_dropped_from_a_name_and_refused_in_a_path(admin: Any) -> None:
    answer = admin.post(URL, json=document(name="nul\x00"))
    assert (answer.status_code, answer.json()["name"]) == (202, "nul")
    answer = admin.post(URL, json=document(dataset={"name": "jsonl", "train": "/d\x00"}))
    assert (answer.status_code, answer.json()["code"]) == (422, "dataset.invalid")


@pytest.mark.parametrize("path", ["experiments/exp%00", "experiments?name=%00", "experiments/exp_1/artifacts/a%00"])
def test_a_nul_character_in_an_address_is_no_server_error(admin: Any, path: str) -> None:
    assert admin.get(f"/api/v1/{path}").status_code in {404, 422}
