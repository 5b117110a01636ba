"""Sign-in with an OpenID Connect provider: a real one, asked over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update
from starlette.testclient import TestClient

from ferret_core.protocol.roles import Role
from ferret_db.tables import User
from tests.api.conftest import open_site
from tests.api.identity_provider import ADA, EVE, Forger, agree, query, settings, started
from tests.api.people import a_user

URL = "/api/v1"


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with started(ADA, EVE) as issuer:
        yield issuer


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def site(request: pytest.FixtureRequest, make_settings: Callable[..., Any], issuer: str) -> Iterator[Any]:
    """A service on each of the databases, with the real provider."""
    url = {} if request.param == "sqlite" else {"database_url": request.getfixturevalue("migrated_postgresql")}
    with open_site(make_settings(**settings(issuer), **url)) as site:
        yield site
        with site.database.begin() as s:  # PostgreSQL's is everybody's
            for user in s.scalars(select(User).where(User.issuer == issuer)):
                user.subject = user.id


def begin(client: TestClient) -> str:
    return client.post(f"{URL}/sign-in/oidc").raise_for_status().json()["url"]


def sign_in(site: Any, subject: str) -> TestClient:
    client = site.page()
    client.answer = client.post(f"{URL}/session/oidc", json=agree(begin(client), subject))
    return client


def come_back(client: TestClient, forger: Forger) -> Any:
    return client.post(f"{URL}/session/oidc", json=forger.agree(begin(client)))


def test_whether_there_is_a_provider_is_told_to_strangers(site: Any, make_settings: Any) -> None:
    assert site.client().get(f"{URL}/sign-in").json() == {"provider": "Hospital"}
    with open_site(make_settings()) as without:
        assert without.client().get(f"{URL}/sign-in").json() == {"provider": None}
        answer = without.client().post(f"{URL}/sign-in/oidc")
        assert (answer.status_code, answer.json()["code"]) == (404, "oidc.not_configured")


def test_the_browser_is_sent_with_state_nonce_and_challenge(site: Any, issuer: str) -> None:
    client = site.page()
    answer = client.post(f"{URL}/sign-in/oidc")
    asked = query(answer.json()["url"])
    assert answer.json()["url"].startswith(f"{issuer}/oauth2/authorize?")
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    assert asked["redirect_uri"] == "http://testserver/sign-in/callback"
    assert {len(asked[name]) >= 43 for name in ("state", "nonce", "code_challenge")} == {True}
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=600"} <= set(cookie.split("; "))
    assert not any(asked[name] in cookie for name in ("state", "nonce", "code_challenge"))
    again = query(begin(client))
    assert {again[name] == asked[name] for name in ("state", "nonce", "code_challenge")} == {False}


def test_who_comes_for_the_first_time_gets_an_account_and_then_has_one(site: Any, issuer: str) -> None:
    client = sign_in(site, "10ea")
    assert client.answer.status_code == 204
    me = client.get(f"{URL}/me").json()
    assert me["name"].startswith("ada")
    assert (me["role"], me["has_password"]) == ("researcher", False)
    assert sign_in(site, "10ea").get(f"{URL}/me").json()["id"] == me["id"]
    opened, _, made = site.audit(order="newest", actor=me["id"])
    assert (made["action"], opened["action"]) == ("user.created", "session.opened")
    assert made["detail"]["issuer"] == opened["detail"]["issuer"] == issuer
    (listed,) = [user for user in site.admin.get(f"{URL}/users?limit=200").json()["items"] if user["id"] == me["id"]]
    assert listed["issuer"] == issuer
    client.delete(f"{URL}/session").raise_for_status()
    assert client.get(f"{URL}/me").status_code == 401


def test_who_has_no_role_at_the_provider_has_none_here_but_the_default(
    site: Any, make_settings: Any, issuer: str
) -> None:
    answer = sign_in(site, "10eb").answer
    assert (answer.status_code, answer.json()["code"]) == (403, "oidc.no_role")
    assert "eve is in strangers" in answer.json()["detail"]
    failed = site.audit(order="newest", action="sign_in.failed")[0]["detail"]
    assert (failed["code"], "eve" in failed["detail"]) == ("oidc.no_role", True)
    with site.database.read() as s:
        assert s.scalars(select(User).where(User.subject == "10eb")).one_or_none() is None
    with open_site(make_settings(**settings(issuer), oidc_default_role=Role.VIEWER)) as lenient:
        assert sign_in(lenient, "10eb").get(f"{URL}/me").json()["role"] == "viewer"


def test_a_disabled_account_stays_out(site: Any) -> None:
    me = sign_in(site, "10ea").get(f"{URL}/me").json()
    site.admin.patch(f"{URL}/users/{me['id']}", json={"enabled": False}).raise_for_status()
    answer = sign_in(site, "10ea").answer
    assert (answer.status_code, answer.json()["code"]) == (403, "user.disabled")


def test_another_browser_cannot_take_up_a_sign_in(site: Any) -> None:
    returned = agree(begin(site.page()), "10ea")
    for client in (site.page(), site.page()):
        answer = client.post(f"{URL}/session/oidc", json=returned)
        assert (answer.status_code, answer.json()["code"]) == (401, "oidc.state_mismatch")
        assert client.get(f"{URL}/me").status_code == 401
        begin(client)  # one of its own does not help


def test_an_answer_is_good_once(site: Any) -> None:
    client = site.page()
    returned = agree(begin(client), "10ea")
    kept = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    client.post(f"{URL}/session/oidc", json=returned).raise_for_status()
    assert client.post(f"{URL}/session/oidc", json=returned).json()["code"] == "oidc.state_mismatch"
    again = client.post(f"{URL}/session/oidc", json=returned, headers={"Cookie": kept})
    assert again.json()["code"] == "oidc.refused", "the provider takes a code once"


def test_names_link_no_accounts(forged: Any, forger: Forger) -> None:
    """Somebody at the provider who is called as a local account is somebody else, and so is the same subject of another
    issuer."""
    local = a_user(forged, Role.ADMIN)
    for taken in ("admin", local.name):
        forger.claims = {"sub": f"sub of {taken}", "preferred_username": taken, "email": taken}
        client = forged.page()
        come_back(client, forger).raise_for_status()
        me = client.get(f"{URL}/me").json()
        assert me["id"] not in {"admin", local.id}
        assert me["name"].startswith(f"{taken}-")
        assert me["role"] == "researcher"
    with forged.database.begin() as s:
        s.execute(update(User).where(User.id == me["id"]).values(issuer="https://elsewhere.example"))
    come_back(client, forger).raise_for_status()
    assert client.get(f"{URL}/me").json()["id"] != me["id"]


def test_the_role_follows_the_provider_at_each_sign_in(forged: Any, forger: Forger) -> None:
    for groups, role in ((["hospital-staff", "hospital-admins"], "admin"), ("hospital-staff", "viewer")):
        forger.claims = {"groups": groups}
        client = forged.page()
        come_back(client, forger).raise_for_status()
        assert client.get(f"{URL}/me").json()["role"] == role
    assert forged.audit(order="newest", action="user.changed")[0]["detail"] == {"role": "viewer", "issuer": forger.url}


def test_an_account_of_the_provider_gets_no_password_here(forged: Any, forger: Forger) -> None:
    client = forged.page()
    come_back(client, forger).raise_for_status()
    me = client.get(f"{URL}/me").json()
    answer = forged.admin.patch(f"{URL}/users/{me['id']}", json={"password": "a fine long password"})
    assert (answer.status_code, answer.json()["code"]) == (409, "user.conflict")


@pytest.mark.parametrize("method", [None, "client_secret_post"])
def test_the_secret_goes_as_the_provider_takes_it(forged: Any, forger: Forger, method: str | None) -> None:
    forger.metadata = {"token_endpoint_auth_methods_supported": [method]} if method else {}
    come_back(forged.page(), forger).raise_for_status()
    assert forger.posted["authorization"].startswith("Basic ") is (method is None)
    assert forger.posted.get("client_id") == ("ferret" if method else None)


def test_claims_that_the_id_token_lacks_come_from_userinfo(forged: Any, forger: Forger) -> None:
    forger.claims = {"groups": None}
    forger.metadata = {"userinfo_endpoint": f"{forger.url}/userinfo"}
    forger.userinfo = {"sub": "somebody else", "groups": ["hospital-admins"]}
    assert come_back(forged.page(), forger).json()["code"] == "oidc.token_invalid"
    forger.userinfo = {"sub": "10ea", "groups": ["hospital-admins"], "preferred_username": "not this"}
    client = forged.page()
    come_back(client, forger).raise_for_status()
    me = client.get(f"{URL}/me").json()
    assert (me["name"], me["role"]) == ("ada", "admin")


def test_a_provider_that_says_no_is_quoted(forged: Any, forger: Forger) -> None:
    client = forged.page()
    state = forger.agree(begin(client))["state"]
    body = {"state": state, "error": "access_denied", "error_description": "not on\x1b[31m duty"}
    answer = client.post(f"{URL}/session/oidc", json=body)
    assert (answer.status_code, answer.json()["code"]) == (401, "oidc.refused")
    assert "access_denied: not on" in answer.json()["detail"]
    assert "\x1b" not in answer.json()["detail"]
    forger.token = 401, {"error": "invalid_client", "error_description": "unknown client"}
    assert "invalid_client: unknown client" in come_back(client, forger).json()["detail"]


def test_a_provider_that_is_gone_is_said_so_and_passwords_go_on(forged: Any, forger: Forger) -> None:
    client = forged.page()
    returned = forger.agree(begin(client))
    forger.stop()
    answer = client.post(f"{URL}/session/oidc", json=returned)
    assert (answer.status_code, answer.json()["code"]) == (502, "oidc.unreachable")
    assert forger.url in answer.json()["detail"]
    person = a_user(forged, Role.VIEWER)
    assert person.browser().get(f"{URL}/me").status_code == 200


@pytest.mark.parametrize(
    "metadata", [{"issuer": "https://elsewhere.example"}, {"token_endpoint": 7}, {"jwks_uri": None}, {"issuer": None}]
)
def test_a_provider_that_talks_nonsense_is_said_so(forged: Any, forger: Forger, metadata: dict[str, Any]) -> None:
    forger.metadata = metadata
    client = forged.page()
    answer = client.post(f"{URL}/sign-in/oidc")
    if answer.is_success:
        answer = client.post(f"{URL}/session/oidc", json=forger.agree(answer.json()["url"]))
    assert (answer.status_code, answer.json()["code"]) == (502, "oidc.unexpected")


def test_a_provider_that_hangs_holds_up_nobody_else(serve: Any, make_settings: Any, forger: Forger) -> None:
    live = serve(make_settings(**settings(forger.url)))
    forger.seconds = 5
    answers: list[int] = []

    def begin() -> None:
        answers.append(httpx.post(f"{live.url}{URL}/sign-in/oidc", timeout=60).status_code)

    threads = [threading.Thread(target=begin) for _ in range(60)]  # more than the server has threads
    for thread in threads:
        thread.start()
    time.sleep(1)
    assert live.admin.get(f"{URL}/me").status_code == 200
    assert answers == [], "while all of them wait"
    for thread in threads:
        thread.join()
    assert set(answers) == {200}


def test_one_person_in_several_browsers_at_once_is_one_account(site: Any, issuer: str) -> None:
    clients = [site.page() for _ in range(4)]
    returned = [agree(begin(client), "10ea") for client in clients]
    ids: list[str] = []

    def come_back(client: TestClient, body: dict[str, str]) -> None:
        client.post(f"{URL}/session/oidc", json=body).raise_for_status()
        ids.append(client.get(f"{URL}/me").json()["id"])

    threads = [threading.Thread(target=come_back, args=each) for each in zip(clients, returned, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 4
    assert len(set(ids)) == 1


def test_behind_a_proxy_the_way_back_follows_the_public_address(make_settings: Any, forger: Forger) -> None:
    with open_site(make_settings(**settings(forger.url), public_url="https://ferret.example.org")) as site:
        assert query(begin(site.client()))["redirect_uri"] == "https://ferret.example.org/sign-in/callback"
