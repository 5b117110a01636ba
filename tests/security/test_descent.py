"""Nothing that a token makes outlives it; people see and end their sessions; a lost role ends everything."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.testclient import TestClient

from ferret_core.protocol.roles import Role
from tests.api.identity_provider import Forger
from tests.api.people import PASSWORD, READ_WRITE, a_user
from tests.api.test_oidc import begin

URL = "/api/v1"
LIST = f"{URL}/experiments"
DAY = 24 * 3600


def make(client: TestClient, name: str, seconds: int | None) -> dict[str, Any]:
    body = {"name": name, "scopes": [*READ_WRITE], "expires_seconds": seconds}
    return client.post(f"{URL}/tokens", json=body).raise_for_status().json()


def opened(site: Any, link: dict[str, Any]) -> TestClient:
    """The browser in which the sign-in link was opened."""
    return site.browser(token=link["token"])


def link_of(client: TestClient) -> dict[str, Any]:
    return client.post(f"{URL}/session/link").raise_for_status().json()


def statuses(*clients: TestClient) -> list[int]:
    return [client.get(LIST).status_code for client in clients]


def of(token: dict[str, Any], site: Any) -> TestClient:
    return site.client(token["token"])


def test_children_expire_with_their_parent_at_the_latest(either_site: Any) -> None:
    site = either_site
    person = a_user(site, Role.ADMIN)  # its token lives for 60 s
    end = datetime.fromisoformat(person.client.get(f"{URL}/tokens").json()["items"][0]["expires_at"])
    child = make(person.client, "child", None)
    grandchild = make(of(child, site), "grandchild", 400 * DAY)
    shorter = make(of(child, site), "shorter", 5)
    other = person.client.post(f"{URL}/users/admin/tokens", json={"name": child["id"], "expires_seconds": None}).json()
    link = link_of(of(grandchild, site))
    browser = opened(site, link)
    in_browser = make(browser, "made in the browser", None)
    for made in (child, grandchild, other, link, in_browser):
        assert datetime.fromisoformat(made["expires_at"]) <= end
    assert datetime.fromisoformat(shorter["expires_at"]) < end
    (session,) = browser.get(f"{URL}/sessions").json()["items"]
    assert datetime.fromisoformat(session["expires_at"]) <= end
    assert session["token"] == grandchild["id"]
    (cookie,) = [each for each in browser.cookies.jar if each.name == site.context.admin.cookie]
    assert cookie.expires is not None
    assert cookie.expires <= end.timestamp() + 1


def test_revoking_a_token_ends_all_that_descends_from_it(either_site: Any) -> None:
    site = either_site
    person = a_user(site, Role.ADMIN)
    other = person.with_token(READ_WRITE)
    child = make(person.client, "child", 30)
    waiting = link_of(of(child, site))
    browser = opened(site, link_of(of(child, site)))
    second = opened(site, link_of(browser))
    in_browser = make(second, "in the browser", None)
    unrelated = opened(site, link_of(other))
    family = (of(child, site), browser, second, of(in_browser, site))
    first = person.client.get(f"{URL}/tokens").json()["items"]
    (parent,) = [each["id"] for each in first if each["id"] not in {person.token_id, child["id"], in_browser["id"]}]
    assert statuses(*family, person.client) == [200] * 5
    other.delete(f"{URL}/tokens/{parent}").raise_for_status()
    assert statuses(*family, person.client) == [401] * 5
    assert site.client().post(f"{URL}/session", json={"token": waiting["token"]}).status_code == 401
    assert statuses(other, unrelated) == [200, 200]
    told = site.audit(subject=parent, order="newest")[0]
    assert (told["action"], told["detail"]["tokens"], told["detail"]["sessions"]) == ("token.revoked", 2, 3)


def test_the_admin_token_and_a_password_bound_nothing(site: Any) -> None:
    """A token that is made in a browser which name and password signed in outlives that session."""
    assert make(site.admin, "lasting", None)["expires_at"] is None
    browser = a_user(site, Role.VIEWER).browser()
    token = make(browser, "laptop", None)
    browser.delete(f"{URL}/session").raise_for_status()
    assert statuses(of(token, site)) == [200]


def test_people_see_and_end_their_own_sessions_alone(either_site: Any) -> None:
    site = either_site
    person, stranger = a_user(site, Role.VIEWER), a_user(site, Role.RESEARCHER)
    first = person.browser()
    second = site.browser(name=person.name, password=PASSWORD)
    found = second.get(f"{URL}/sessions").json()["items"]
    assert [session["current"] for session in found] == [True, False]
    assert {session["link"] for session in found} == {False}
    ours, theirs = (session["id"] for session in found)
    assert stranger.client.delete(f"{URL}/sessions/{ours}").json()["code"] == "session.not_found"
    assert stranger.client.get(f"{URL}/users/{person.id}/sessions").status_code == 403
    assert stranger.client.delete(f"{URL}/users/{person.id}/sessions/{ours}").status_code == 403
    for vague in ("ses_", "ses_%", "ses_0000000000000000", ours[:-1]):
        assert second.delete(f"{URL}/sessions/{vague}").json()["code"] == "session.not_found"
    second.delete(f"{URL}/sessions/{theirs}").raise_for_status()
    assert statuses(first, second) == [401, 200]
    site.admin.delete(f"{URL}/users/{person.id}/sessions/{ours}").raise_for_status()
    assert statuses(second) == [401]
    told = site.audit(action="session.closed", order="newest")
    assert [(entry["actor"], entry["subject"]) for entry in told[:2]] == [("admin", ours), (person.id, theirs)]


def test_a_sign_in_link_that_is_ended_opens_nothing(site: Any) -> None:
    person = a_user(site, Role.VIEWER)
    link = link_of(person.client)
    (listed,) = person.client.get(f"{URL}/sessions").json()["items"]
    assert listed["link"]
    person.client.delete(f"{URL}/sessions/{listed['id']}").raise_for_status()
    assert site.client().post(f"{URL}/session", json={"token": link["token"]}).status_code == 401


def sign_in(site: Any, forger: Forger, *groups: str) -> TestClient:
    forger.claims = {"groups": [*groups]}
    client = site.page()
    client.answer = client.post(f"{URL}/session/oidc", json=forger.agree(begin(client)))
    return client


def test_a_provider_user_without_a_group_has_no_session_no_token_and_no_role(forged: Any, forger: Forger) -> None:
    site = forged
    browser = sign_in(site, forger, "hospital-admins")
    user = browser.get(f"{URL}/me").json()
    assert user["role"] == "admin"
    token, link = of(make(browser, "for ever", None), site), link_of(browser)
    given = site.admin.post(f"{URL}/users/{user['id']}/tokens", json={"name": "given"}).json()
    second = of(make(token, "its child", None), site)
    assert [each.get(f"{URL}/users").status_code for each in (browser, token, of(given, site))] == [200] * 3
    refused = sign_in(site, forger).answer.json()
    assert refused["code"] == "oidc.no_role"
    assert statuses(browser, token, second, of(given, site)) == [401] * 4
    assert site.client().post(f"{URL}/session", json={"token": link["token"]}).status_code == 401
    (shown,) = [each for each in site.admin.get(f"{URL}/users").json()["items"] if each["id"] == user["id"]]
    assert shown["role"] == "viewer"
    (told,) = site.audit(subject=user["id"], action="user.changed")
    assert told["detail"] == {"role": "viewer", "sessions": 2, "tokens": 3, "issuer": forger.url}


def test_a_stranger_of_the_provider_changes_nobody(forged: Any, forger: Forger) -> None:
    site = forged
    browser = sign_in(site, forger, "hospital-admins")
    client = site.page()
    forger.claims = {"sub": "somebody else", "groups": [], "preferred_username": "ada"}
    answer = client.post(f"{URL}/session/oidc", json=forger.agree(begin(client)))
    assert answer.json()["code"] == "oidc.no_role"
    assert statuses(browser) == [200]


def test_trying_again_writes_nothing_more_and_groups_that_return_let_in_again(forged: Any, forger: Forger) -> None:
    user = sign_in(forged, forger, "hospital-research").get(f"{URL}/me").json()
    for _ in range(3):
        assert sign_in(forged, forger).answer.status_code == 403
    assert len(forged.audit(subject=user["id"], action="user.changed")) == 1
    assert sign_in(forged, forger, "hospital-research").get(f"{URL}/me").json()["role"] == "researcher"
