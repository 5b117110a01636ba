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


@pytest.mark.slow
def test_a_sign_in_link_asks_before_it_replaces_a_session(serve: Any, make_settings: Any, page: Page) -> None:
    """Somebody sends an administrator a link into an account of their own."""
    live = serve(make_settings())
    thief = a_user(live.site, Role.VIEWER)

    def open_link(client: Any) -> None:
        link = client.post("/api/v1/session/link").raise_for_status().json()
        page.goto("about:blank")
        page.goto(f"{live.url}/#ticket={link['token']}")

    page.set_default_timeout(60_000)
    open_link(live.admin)
    expect(page.get_by_test_id("account-menu")).to_contain_text("admin")
    open_link(thief.client)
    asked = page.get_by_test_id("replace-session")
    expect(asked).to_contain_text("You are signed in as admin")
    asked.get_by_role("button", name="Stay signed in as admin").click()
    expect(page.get_by_test_id("account-menu")).to_contain_text("admin")
    assert "#" not in page.url
    open_link(thief.client)
    page.get_by_role("button", name="Use the link").click()
    expect(page.get_by_test_id("account-menu")).to_contain_text(thief.name)
