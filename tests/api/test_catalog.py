from __future__ import annotations

from typing import Any

import jsonschema
import pytest


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        ("algorithms", {"ferret", "fedavg"}),
        ("datasets", {"gsm8k", "jsonl"}),
        ("partitions", {"iid", "dirichlet"}),
        ("models", {"huggingface"}),
        ("experiments", {"specification"}),
    ],
)
def test_a_section_lists_its_entries_with_every_option_described(site: Any, kind: str, some: set[str]) -> None:
    items = site.admin.get(f"/api/v1/catalog/{kind}").json()["items"]
    assert some <= {item["name"] for item in items}
    for item in items:
        assert set(item) == {"name", "title", "description", "schema"}
        assert site.admin.get(f"/api/v1/catalog/{kind}/{item['name']}").json() == item
        for table in (item["schema"], *item["schema"].get("$defs", {}).values()):
            unsaid = [name for name, option in table.get("properties", {}).items() if not option.get("description")]
            assert unsaid == [], (item["name"], table["title"])


def test_an_options_schema_says_what_a_submission_would_be_told(site: Any) -> None:
    schema = site.admin.get("/api/v1/catalog/algorithms/ferret").json()["schema"]
    jsonschema.validate({"K": 64}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"K": 0}, schema)


def test_an_unknown_entry_names_those_there_are(site: Any) -> None:
    answer = site.admin.get("/api/v1/catalog/algorithms/magic")
    assert (answer.status_code, answer.json()["code"]) == (404, "catalog.not_found")
    assert "fedavg" in answer.json()["detail"]
