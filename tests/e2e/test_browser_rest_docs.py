"""The page ``/docs``: every operation of the REST API, tried out in the browser, with nothing from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py
OPENAPI = json.loads((Path(__file__).parents[2] / "openapi.json").read_text())


def opened(page: Page, served: Served, operation: str, tag: str = "experiments") -> Locator:
    """The operation's section, ready to be tried out."""
    page.goto(f"{served.url}/docs")
    section = page.locator(f"#operations-{tag}-{operation}")
    section.locator(".opblock-summary-control").click()
    section.get_by_role("button", name="Try it out").click()
    return section


def answered(page: Page, section: Locator) -> Any:
    with page.expect_response(lambda answer: "openapi.json" not in answer.url) as answer:
        section.get_by_role("button", name="Execute").click()
    expect(section.locator(".live-responses-table")).to_contain_text(str(answer.value.status))
    return answer.value


def test_all_operations_are_listed_and_nothing_comes_from_elsewhere(page: Page, served: Served) -> None:
    hosts = set[str]()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.goto(f"{served.url}/docs")
    expect(page.locator(".opblock")).to_have_count(sum(len(methods) for methods in OPENAPI["paths"].values()))
    assert hosts == {urlsplit(served.url).netloc}


@pytest.mark.slow
def test_who_is_signed_in_asks_and_changes(signed_in: Page, served: Served, finished: Any) -> None:
    page = signed_in
    listed = answered(page, opened(page, served, "list_experiments"))
    assert listed.status == 200
    assert finished.id in [item["id"] for item in listed.json()["items"]]
    planned = opened(page, served, "plan_draft")
    expect(planned.locator("textarea")).to_have_value(json.dumps(example("Draft"), indent=2))
    assert answered(page, planned).status == 200


def example(schema: str) -> Any:
    return OPENAPI["components"]["schemas"][schema]["examples"][0]
