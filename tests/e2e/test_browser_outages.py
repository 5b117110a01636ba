"""A server that goes, comes back, forgets who somebody is or is older than the dashboard."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from ferret_core.protocol.roles import Scope
from tests.shared_service import descendants

pytestmark = pytest.mark.browser
Served = Any  # tests/shared_service.py

AWAY_SECONDS = 12


@pytest.fixture
def complaints() -> list[str]:
    return ["401", "Failed to load resource"]


@pytest.mark.slow
def test_a_page_waits_politely_while_the_server_is_away_and_then_shows_everything_once(
    signed_in: Page, context: BrowserContext, served: Served, waiting: Any
) -> None:
    page, asked = signed_in, list[str]()
    page.goto(f"{served.url}/experiments/{waiting.id}?tab=log")
    expect(page.get_by_test_id("live-badge")).to_have_text("live")

    context.route("**/api/**", lambda route: route.abort("connectionrefused"))
    os.kill(api_of(served), signal.SIGTERM)  # ends its streams; ferret serve starts another
    expect(page.get_by_test_id("live-badge")).to_contain_text("stale since")
    context.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(AWAY_SECONDS * 1000)
    assert len(asked) <= AWAY_SECONDS / 2, asked
    waiting.pause()
    waiting.resume()

    context.unroute("**/api/**")
    expect(page.get_by_test_id("live-badge")).to_have_text("live")
    rows = page.get_by_test_id("events").locator("tbody tr")
    expect(rows.filter(has_text="resumed")).to_have_count(1)
    happened = [event.type.partition(".")[::2] for event in waiting.past_events()]
    assert [" ".join(words) for words in reversed(happened)] == rows.locator("td:nth-child(3)").all_inner_texts()


def test_a_page_whose_session_has_ended_asks_to_sign_in_and_goes_on_where_it_was(
    signed_in: Page, context: BrowserContext, served: Served, waiting: Any
) -> None:
    page, address = signed_in, f"{served.url}/experiments/{waiting.id}?tab=log"
    page.goto(address)
    expect(page.get_by_test_id("events")).to_be_visible()
    context.clear_cookies()
    expect(page.get_by_test_id("sign-in")).to_be_visible()
    page.get_by_label("Password or admin token").fill((served.home / "admin.token").read_text())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_test_id("events")).to_be_visible()
    assert page.url == address


def test_an_address_that_no_longer_signs_in_says_why(page: Page, served: Served) -> None:
    people = served.service.people
    token = people.create_token("short", [Scope.READ], 3600)
    people.revoke_token("short")
    page.goto(f"{served.url}/#token={token.token}")
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text("auth.invalid")
    expect(page.get_by_test_id("sign-in")).to_be_visible()
    assert "token" not in page.url


def test_a_server_that_does_not_answer_is_told_once_and_can_be_asked_again(
    signed_in: Page, context: BrowserContext, served: Served
) -> None:
    page = signed_in
    context.route("**/api/**", lambda route: route.abort("connectionrefused"))
    page.reload()
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text("ferret serve")
    context.unroute("**/api/**")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Experiments")).to_be_visible()


def test_an_action_that_fails_is_a_toast_with_the_requests_id_and_the_page_stays(
    signed_in: Page, context: BrowserContext, served: Served, waiting: Any
) -> None:
    page = signed_in
    page.goto(f"{served.url}/experiments/{waiting.id}")
    page.get_by_role("button", name="Pause").wait_for()
    page.route("**/*:pause", lambda route: (waiting.cancel(), route.continue_()))
    page.get_by_role("button", name="Pause").click()
    toast = page.get_by_test_id("toasts").locator("section")
    expect(toast).to_have_count(1)
    expect(toast).to_contain_text("Pause failed")
    expect(toast).to_contain_text(re.compile(r"experiment\.conflict · request [0-9a-f]{16}"))
    expect(page.get_by_role("heading", name="waiting")).to_be_visible()
    page.keyboard.press("Escape")
    expect(toast).to_have_count(0)


def test_a_newer_server_breaks_no_page(signed_in: Page, served: Served, finished: Any) -> None:
    """States, fields and kinds of events that this dashboard has never heard of."""
    page = signed_in
    page.route(f"**/api/v1/experiments/{finished.id}", with_unknown)
    page.route("**/api/v1/experiments/*/events?*", with_unknown_event)
    page.goto(f"{served.url}/experiments/{finished.id}")
    expect(page.get_by_test_id("experiment-state")).to_have_text("dreaming")
    for name in page.get_by_role("tab").all_inner_texts():
        page.get_by_role("tab", name=name, exact=True).click()
        expect(page.get_by_role("tabpanel", name=name, exact=True)).to_be_visible()
    page.get_by_role("tab", name="Log", exact=True).click()
    expect(page.get_by_test_id("events")).to_contain_text("moon landed")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_an_older_server_breaks_only_the_page_that_needs_what_it_lacks(
    signed_in: Page, served: Served, finished: Any, complaints: list[str]
) -> None:
    complaints.append("Cannot read properties of undefined")
    page = signed_in
    page.route(f"**/api/v1/experiments/{finished.id}", without_metrics)
    page.goto(f"{served.url}/experiments/{finished.id}")
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text("another release")
    page.unroute_all(behavior="wait")  # the page asks all the time: a handler may be at work
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", name="finished")).to_be_visible()


def without_metrics(route: Route) -> None:
    response = route.fetch()
    route.fulfill(response=response, json={key: value for key, value in response.json().items() if key != "metrics"})


def with_unknown(route: Route) -> None:
    response = route.fetch()
    route.fulfill(response=response, json=response.json() | {"mood": "calm", "state": "dreaming"})


def with_unknown_event(route: Route) -> None:
    response = route.fetch()
    items = response.json()["items"]
    strange = {"seq": 10_000, "time": "2026-11-21T12:00:00Z", "type": "moon.landed", "round": None, "data": {}}
    route.fulfill(response=response, json={"items": [*items, strange] if items else []})


def api_of(served: Served) -> int:
    """The process of ``ferret serve`` that answers requests."""
    lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(served.process.pid)}
    return next(pid for pid, line in lines.items() if b"ferret_api" in line)
