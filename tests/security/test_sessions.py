"""A browser's session: its own at each sign-in, over when it is signed out, has expired, or the token is another."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from ferret_core.protocol.roles import Scope
from ferret_db.repositories import user_tokens, users
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


def test_a_sign_in_link_opens_one_session_once(site: Any) -> None:
    link = site.admin.post("/api/v1/session/link").raise_for_status().json()
    assert link["url"].endswith(f"/#ticket={link['token']}")
    browser = TestClient(site.app, headers={"Origin": "http://testserver"})
    assert browser.post("/api/v1/session", json={"token": link["token"]}).status_code == 204
    assert browser.get(LIST).status_code == 200
    again = site.client().post("/api/v1/session", json={"token": link["token"]})
    assert (again.status_code, again.json()["code"]) == (401, "auth.invalid")
    assert "ferret dashboard" in again.json()["detail"]


def test_a_sign_in_link_is_no_token_and_no_cookie(site: Any) -> None:
    token = site.admin.post("/api/v1/session/link").json()["token"]
    assert site.client(token).get(LIST).status_code == 401
    assert thief(site, token).get(LIST).status_code == 401
    assert thief(site, token).post("/api/v1/session/link").status_code == 401


def test_a_sign_in_link_expires(site: Any) -> None:
    token = site.admin.post("/api/v1/session/link").json()["token"]
    with site.database.begin() as s:
        (row,) = s.query(BrowserSession)
        row.expires_at = site.database.now(s)
    assert site.client().post("/api/v1/session", json={"token": token}).status_code == 401


def test_links_are_in_the_audit_log_and_their_tokens_are_not(site: Any) -> None:
    token = site.admin.post("/api/v1/session/link").json()["token"]
    site.client().post("/api/v1/session", json={"token": token})
    opened, made = site.admin.get("/api/v1/audit").json()["items"]
    assert (made["action"], opened["action"]) == ("sign_in.link_made", "session.opened")
    assert opened["detail"]["link"] is True
    assert token not in site.admin.get("/api/v1/audit").text


def test_a_token_that_may_not_do_everything_makes_no_link(site: Any) -> None:
    with site.database.begin() as s:
        _, token = user_tokens.create(s, users.INSTALLATION, "writes", [Scope.WRITE], 60)
    assert site.client(token).post("/api/v1/session/link").json()["code"] == "auth.forbidden"
