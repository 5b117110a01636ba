"""Experiments that are missing, empty, short, not a number or strangely named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from ferret_core.protocol.spec import ExperimentSpec

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py
SpecFactory = Callable[..., ExperimentSpec]

PHONE, SCREEN, WALL = ({"width": width, "height": 900} for width in (390, 1440, 2560))
NAMES = {
    "long": "a-name-without-any-place-to-break-" * 3 + "of-the-most-there-",
    "right-to-left": "ניסוי של בית החולים 7 – سجل التجربة",
}


def fits(page: Page) -> None:
    """Waits until the page is no wider than its window: charts follow a new size a moment later."""
    page.wait_for_function("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize("complaints", [["401", "404"]], ids=["404"])
def test_an_experiment_that_does_not_exist_is_said_once_with_the_way_back(signed_in: Page, served: Served) -> None:
    page = signed_in
    page.goto(f"{served.url}/experiments/exp_00000000000000000000000000")
    alert = page.get_by_role("alert")
    expect(alert).to_have_count(1)
    expect(alert).to_contain_text("Check the address")
    expect(alert).to_contain_text("experiment.not_found")
    alert.get_by_role("link", name="See all experiments").click()
    expect(page.get_by_role("heading", name="Experiments")).to_be_visible()


def test_a_run_without_any_measurement_says_what_it_waits_for(signed_in: Page, served: Served, waiting: Any) -> None:
    page = signed_in
    page.goto(f"{served.url}/experiments/{waiting.id}")
    page.get_by_role("tab").first.wait_for()
    for name in page.get_by_role("tab").all_inner_texts():
        page.get_by_role("tab", name=name, exact=True).click()
        panel = page.get_by_role("tabpanel", name=name)
        expect(panel).not_to_be_empty()
        expect(panel.get_by_text("NaN")).to_have_count(0)
        expect(panel.get_by_role("alert")).to_have_count(0)


def test_a_single_round_and_values_that_are_no_numbers_are_drawn_as_they_are(
    signed_in: Page, served: Served, toy_spec: SpecFactory
) -> None:
    run = served.service.submit(toy_spec(name="single", rounds=1)).wait()
    page = signed_in
    page.goto(f"{served.url}/experiments/{run.id}")
    bytes_sent = page.get_by_test_id("chart-bytes")
    expect(bytes_sent.get_by_text("one point so far")).to_be_visible()
    expect(page.get_by_test_id("line-eval_loss")).to_have_attribute("data-points", "2")

    page.route("**/api/**/metrics*", last_is_no_number)
    page.reload()
    loss = page.get_by_test_id("chart-loss")
    expect(page.get_by_test_id("line-eval_loss")).to_have_attribute("data-points", "1")
    expect(page.get_by_test_id("line-eval_loss")).to_contain_text("not a number")
    loss.get_by_text("Values", exact=True).click()
    expect(loss.locator("details").get_by_text("not a number")).not_to_have_count(0)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_strange_name_breaks_no_line(signed_in: Page, served: Served, toy_spec: SpecFactory, name: str) -> None:
    run = served.service.submit(toy_spec(name=name, participants={"edge": 1}))
    page = signed_in
    for address in (served.url, f"{served.url}/experiments/{run.id}"):
        page.goto(address)
        expect(page.get_by_text(name).first).to_be_visible()
        for size in (PHONE, SCREEN, WALL):
            page.set_viewport_size(size)
            fits(page)
    direction = page.get_by_role("heading", name=name).evaluate(
        "node => [node.dir, getComputedStyle(node).unicodeBidi]"
    )
    assert direction[0] == "auto" or direction[1] in ("isolate", "plaintext"), "its marks turn no text around it"
    run.cancel()


def last_is_no_number(route: Route) -> None:
    """JSON has none, so that a server can only say null."""
    response = route.fetch()
    body = response.json()
    for series in body["series"]:
        series["points"][-1]["value"] = None
    route.fulfill(response=response, json=body)
