"""A query parameter that an operation does not have is refused, wherever it is sent."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("address", "field", "advice"),
    [
        ("experiments?stat=running", "stat", "did you mean state?"),
        ("experiments?project=default&sotr=name", "sotr", "did you mean sort?"),
        ("audit?actr=admin", "actr", "did you mean actor?"),
        ("info?page=2", "page", "leave it out"),
    ],
)
def test_it_is_told_with_the_nearest_that_there_is(site: Any, address: str, field: str, advice: str) -> None:
    answer = site.admin.get(f"/api/v1/{address}")
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (answer.json()["code"], error["field"]) == ("request.invalid", field)
    assert error["message"].endswith(advice)


def test_many_are_told_in_part_and_secrets_are_not_repeated(site: Any) -> None:
    query = "&".join(["token=hush", *(f"x{number}=1" for number in range(100))])
    problem = site.admin.get(f"/api/v1/info?{query}").json()
    assert (len(problem["errors"]), problem["errors_omitted"]) == (20, 81)
    assert "hush" not in str(problem)


def test_known_ones_count_also_where_a_dependency_asks_for_them(site: Any) -> None:
    assert site.admin.get("/api/v1/experiments?state=queued&archived=true&limit=1&sort=name").status_code == 200
