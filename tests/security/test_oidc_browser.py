"""Sign-in with a real provider in Chromium: the service and the provider are two sites, as they are in a hospital."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from ferret_db.tables import FIRST_PROJECT
from tests import chromium
from tests.api.conftest import bearer
from tests.api.identity_provider import ADA, agree, settings, started

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

NAME = "ferret.test"
BUTTON = "Sign in with Hospital"


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with started(ADA) as issuer:
        yield issuer


@pytest.fixture
def live(serve: Any, make_settings: Any, issuer: str) -> Any:
    live = serve(make_settings(**settings(issuer), allowed_hosts=NAME))
    live.address = f"http://{NAME}:{live.port}"
    return live


@pytest.fixture
def page(need: Callable[[bool, str], None]) -> Iterator[Page]:
    with chromium.opened(need, f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as page:
        page.set_default_timeout(60_000)
        refused: list[str] = []
        page.on(
            "console",
            lambda message: refused.append(message.text) if "Content Security Policy" in message.text else None,
        )
        yield page
        assert refused == [], "the security headers let the sign-in through"


def join_project(live: Any, subject: str) -> None:
    """Somebody has signed in once, so that there is an account, which an administrator adds to the first project."""
    with httpx.Client(base_url=f"{live.url}/api/v1") as client:
        begun = client.post("/sign-in/oidc").raise_for_status().json()
        client.post("/session/oidc", json=agree(begun["url"], subject)).raise_for_status()
        user_id = client.get("/me").json()["id"]
    live.admin.put(f"/api/v1/projects/{FIRST_PROJECT}/members/{user_id}").raise_for_status()


def test_the_button_leads_to_the_provider_and_back_to_the_page_one_came_for(live: Any, page: Page) -> None:
    experiment_id = live.site.running()
    join_project(live, ADA["sub"])
    page.goto(f"{live.address}/experiments/{experiment_id}?x=time")
    page.get_by_role("button", name=BUTTON).click()
    page.get_by_role("button", name=ADA["sub"]).click()
    expect(page.get_by_test_id("account-menu")).to_have_text("ada researcher", timeout=60_000)
    assert page.url == f"{live.address}/experiments/{experiment_id}?x=time"
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_test_id("paused")).to_be_visible(timeout=60_000)

    cookies = {cookie.get("name", ""): cookie for cookie in page.context.cookies(live.address)}
    session = cookies[live.site.context.admin.cookie]
    assert (session.get("httpOnly"), session.get("sameSite")) == (True, "Strict")
    assert not any("sign_in" in name for name in cookies)

    page.get_by_test_id("account-menu").click()
    page.get_by_role("link", name="Your account").click()
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Create").click()
    token = page.get_by_test_id("new-token").locator("code").inner_text()
    me = httpx.get(f"{live.url}/api/v1/me", headers=bearer(token)).json()
    assert (me["name"], me["role"], me["scopes"]) == ("ada", "researcher", ["read"])

    page.get_by_test_id("account-menu").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name=BUTTON)).to_be_visible(timeout=60_000)


@pytest.mark.slow
def test_an_answer_that_this_browser_did_not_ask_for_signs_nobody_in(live: Any, page: Page) -> None:
    page.goto(f"{live.address}/sign-in/callback?code=stolen&state=guessed")
    expect(page.get_by_role("alert")).to_contain_text("oidc.state_mismatch", timeout=60_000)
    assert page.url == f"{live.address}/"
    page.reload()
    expect(page.get_by_role("button", name=BUTTON)).to_be_visible(timeout=60_000)
    expect(page.get_by_role("alert")).to_have_count(0)
