"""A browser's session: its own at each sign-in, over when it is signed out, has expired, or the token is another."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from ferret_db.tables import BrowserSession
from tests.api.conftest import open_site

LIST = "/api/v1/experiments"


def cookie(site: Any, browser: TestClient) -> str:
    return browser.cookies[site.context.admin.cookie]


def thief(site: Any, value: str) -> TestClient:
    """Somebody who has copied the cookie."""
    copy = site.client()
    copy.cookies.set(site.context.admin.cookie, value)
    return copy


def test_each_sign_in_begins_a_session_of_its_own(site: Any) -> None:
    first, second = site.browser(), site.browser()
    assert cookie(site, first) != cookie(site, second)
    assert len(cookie(site, first)) >= 43
    assert first.delete("/api/v1/session").status_code == 204
    assert second.get(LIST).status_code == 200


def test_signing_out_ends_every_copy_of_the_cookie(site: Any) -> None:
    browser = site.browser()
    copy = thief(site, cookie(site, browser))
    assert copy.get(LIST).status_code == 200
    browser.delete("/api/v1/session").raise_for_status()
    assert copy.get(LIST).status_code == 401
    assert site.browser().get(LIST).status_code == 200


def test_a_session_expires(site: Any) -> None:
    browser = site.browser()
    with site.database.read() as s:
        (row,) = s.query(BrowserSession)
    with site.database.begin() as s:
        s.get(BrowserSession, row.secret_hash).expires_at = site.database.now(s)
    assert browser.get(LIST).status_code == 401
    site.browser()
    with site.database.read() as s:
        assert s.query(BrowserSession).count() == 1, "what has expired is forgotten at the next sign-in"


def test_the_database_holds_no_cookie(site: Any) -> None:
    value = cookie(site, site.browser())
    with site.database.read() as s:
        (row,) = s.query(BrowserSession)
    assert value not in {row.secret_hash, row.issuer}
    assert thief(site, row.secret_hash).get(LIST).status_code == 401


def test_another_admin_token_ends_all_sessions(make_settings: Any) -> None:
    with open_site(make_settings()) as site:
        name, value = site.context.admin.cookie, cookie(site, site.browser())
    with open_site(make_settings(admin_token="another-token-for-the-tests")) as site:
        for cookie_name in (name, site.context.admin.cookie):
            browser = site.client()
            browser.cookies.set(cookie_name, value)
            assert browser.get(LIST).status_code == 401


def test_a_session_outlives_a_restart(make_settings: Any) -> None:
    with open_site(make_settings()) as site:
        value = cookie(site, site.browser())
    with open_site(make_settings()) as site:
        assert thief(site, value).get(LIST).status_code == 200


def test_the_cookie_lasts_as_long_as_the_session(make_settings: Any) -> None:
    with open_site(make_settings(session_seconds=3_600)) as site:
        answer = site.client().post("/api/v1/session", json={"token": site.context.admin.value})
    assert "Max-Age=3600" in answer.headers["Set-Cookie"]


def test_the_cookie_is_no_token_and_the_token_no_cookie(site: Any) -> None:
    browser, admin = site.browser(), site.context.admin
    assert site.client(cookie(site, browser)).get(LIST).status_code == 401
    assert thief(site, admin.value).get(LIST).status_code == 401
