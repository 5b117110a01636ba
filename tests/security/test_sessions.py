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


def test_signing_out_ends_every_copy_of_the_cookie_and_no_other_session(site: Any) -> None:
    browser, other = site.browser(), site.browser()
    assert cookie(site, browser) != cookie(site, other)
    assert len(cookie(site, browser)) >= 43
    copy = thief(site, cookie(site, browser))
    assert copy.get(LIST).status_code == 200
    assert browser.delete("/api/v1/session").status_code == 204
    assert copy.get(LIST).status_code == 401
    assert other.get(LIST).status_code == 200


def test_sessions_and_sign_in_links_expire(site: Any) -> None:
    browser = site.browser()
    link = site.admin.post("/api/v1/session/link").json()["token"]
    with site.database.begin() as s:
        for row in s.query(BrowserSession):
            row.expires_at = site.database.now(s)
    assert browser.get(LIST).status_code == 401
    assert site.client().post("/api/v1/session", json={"token": link}).status_code == 401
    site.browser()
    with site.database.read() as s:
        assert s.query(BrowserSession).count() == 1, "what has expired is forgotten at the next sign-in"


def test_the_database_holds_no_cookie(site: Any) -> None:
    value = cookie(site, site.browser())
    with site.database.read() as s:
        (row,) = s.query(BrowserSession)
    assert value not in {row.secret_hash, row.issuer}
    assert thief(site, row.secret_hash).get(LIST).status_code == 401


def test_a_session_outlives_a_restart_but_not_the_admin_token(make_settings: Any) -> None:
    with open_site(make_settings(session_seconds=3_600)) as site:
        answer = site.page().post("/api/v1/session", json={"token": site.context.admin.value})
        name, value = site.context.admin.cookie, answer.cookies[site.context.admin.cookie]
    assert "Max-Age=3600" in answer.headers["Set-Cookie"]
    with open_site(make_settings()) as site:
        assert thief(site, value).get(LIST).status_code == 200
    with open_site(make_settings(admin_token="another-token-for-the-tests")) as site:
        for cookie_name in (name, site.context.admin.cookie):
            browser = site.client()
            browser.cookies.set(cookie_name, value)
            assert browser.get(LIST).status_code == 401


def test_a_cookie_a_token_and_a_sign_in_link_do_not_stand_for_each_other(site: Any) -> None:
    link = site.admin.post("/api/v1/session/link").json()["token"]
    for value in (cookie(site, site.browser()), link):
        assert site.client(value).get(LIST).status_code == 401
    for value in (site.context.admin.value, link):
        assert thief(site, value).get(LIST).status_code == 401
        assert thief(site, value).post("/api/v1/session/link").status_code == 401


def test_a_sign_in_link_opens_one_session_once(site: Any) -> None:
    link = site.admin.post("/api/v1/session/link").raise_for_status().json()
    assert link["url"].endswith(f"/#ticket={link['token']}")
    assert site.browser(token=link["token"]).get(LIST).status_code == 200
    again = site.client().post("/api/v1/session", json={"token": link["token"]})
    assert (again.status_code, again.json()["code"]) == (401, "auth.invalid")
    made, opened, _ = site.audit()
    assert (made["action"], opened["action"], opened["detail"]["link"]) == ("sign_in.link_made", "session.opened", True)
    assert link["token"] not in site.admin.get("/api/v1/audit").text
