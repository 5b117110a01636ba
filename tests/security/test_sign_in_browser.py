"""An account signs in at the dashboard in Chromium, and out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ferret_core.protocol.roles import Role
from tests import chromium
from tests.api.people import PASSWORD, a_user

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def page(need: Callable[[bool, str], None]) -> Iterator[Page]:
    with chromium.opened(need) as page:
        yield page


def test_a_viewer_sees_who_it_is_changes_its_password_and_leaves(serve: Any, make_settings: Any, page: Page) -> None:
    live = serve(make_settings())
    live.site.running()
    person = a_user(live.site, Role.VIEWER)
    person.change(password=PASSWORD)
    other = person.browser()
    page.set_default_timeout(60_000)

    page.goto(live.url)
    page.get_by_label("Name").fill(person.name)
    page.get_by_label("Password or admin token").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("link", name="toy").first.click()
    expect(page.get_by_test_id("only-reads")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)

    page.get_by_test_id("account-menu").click()
    page.get_by_role("link", name="Your account").click()
    expect(page.get_by_role("heading", name=person.name)).to_be_visible()
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_label("New password", exact=False).first.fill("another fine password")
    page.get_by_label("New password again").fill("another fine password")
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_text("signed out everywhere else")).to_be_visible(timeout=60_000)
    assert other.get("/api/v1/me").status_code == 401

    page.reload()
    page.get_by_test_id("account-menu").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_test_id("sign-in")).to_be_visible(timeout=60_000)


def test_name_and_password_open_the_dashboard(serve: Any, make_settings: Any, page: Page) -> None:
    live = serve(make_settings())
    live.site.running()
    person = a_user(live.site, Role.VIEWER)
    person.change(password=PASSWORD)

    def sign_in(password: str) -> None:
        page.get_by_label("Name").fill(person.name)
        page.get_by_label("Password or admin token").fill(password)
        page.get_by_role("button", name="Sign in").click()

    page.goto(live.url)
    sign_in("not the password")
    expect(page.get_by_role("alert")).to_contain_text("no enabled account")
    sign_in(PASSWORD)
    expect(page.get_by_role("link", name="toy").first).to_be_visible(timeout=60_000)
    person.change(enabled=False)
    page.reload()
    expect(page.get_by_test_id("sign-in")).to_be_visible(timeout=60_000)
