"""Users: accounts, roles, passwords, tokens of one's own, and what the audit log tells of them."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Any

import pytest

from ferret_core.protocol.roles import Role, Scope
from ferret_db.repositories import user_tokens
from ferret_db.tables import User, UserToken
from tests.api.people import PASSWORD, a_user

URL = "/api/v1"


def sign_in(site: Any, name: str, password: str) -> Any:
    return site.page().post(f"{URL}/session", json={"name": name, "password": password})


def told(site: Any, subject: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [(entry["actor"], entry["action"], entry["detail"]) for entry in site.audit(subject=subject)]


def test_an_administrator_makes_changes_and_lists_users(either_site: Any) -> None:
    site = either_site
    person = a_user(site, Role.VIEWER)
    answer = site.admin.post(f"{URL}/users", json={"name": person.name.upper(), "role": "admin"})
    assert (answer.status_code, answer.json()["code"]) == (409, "user.conflict")
    person.change(role="researcher")
    first = site.admin.get(f"{URL}/users", params={"limit": 1}).json()
    rest = site.admin.get(f"{URL}/users", params={"limit": 200, "cursor": first["next_cursor"]}).json()
    found = first["items"] + rest["items"]
    names = [user["name"] for user in found]
    assert names == sorted(names)
    assert {"admin", person.name} <= set(names)
    assert [user["role"] for user in found if user["id"] == person.id] == ["researcher"]
    assert person.client.get(f"{URL}/me").json() == {
        "id": person.id,
        "name": person.name,
        "role": "researcher",
        "scopes": ["read", "write"],
        "has_password": False,
        "projects": ["default"],
    }
    assert [(actor, action) for actor, action, _ in told(site, person.id)] == [
        ("admin", "user.created"),
        ("admin", "member.added"),
        ("admin", "user.changed"),
    ]


def test_what_a_user_does_is_told_under_its_id(site: Any) -> None:
    person = a_user(site, Role.RESEARCHER)
    experiment_id = site.running()
    person.client.post(f"{URL}/experiments/{experiment_id}:pause").raise_for_status()
    assert told(site, experiment_id) == [(person.id, "experiment.paused", {"name": "toy"})]


@pytest.mark.parametrize("change", [{"role": "viewer"}, {"enabled": False}])
def test_the_installations_administrator_stays_one(site: Any, change: dict[str, Any]) -> None:
    answer = site.admin.patch(f"{URL}/users/admin", json=change)
    assert (answer.status_code, answer.json()["code"]) == (409, "user.conflict")
    assert site.admin.get(f"{URL}/me").json()["role"] == "admin"


def test_nobody_and_nothing_to_change_is_said(site: Any) -> None:
    assert site.admin.patch(f"{URL}/users/usr_1", json={"enabled": True}).json()["code"] == "user.not_found"
    assert site.admin.get(f"{URL}/users/usr_1/tokens").json()["code"] == "user.not_found"
    assert "nothing is to be changed" in site.admin.patch(f"{URL}/users/admin", json={}).json()["detail"]


def test_name_and_password_sign_in_and_the_name_may_be_written_in_capitals(either_site: Any) -> None:
    person = a_user(either_site, Role.VIEWER)
    person.change(password=PASSWORD)
    browser = either_site.browser(name=person.name.upper(), password=PASSWORD)
    assert browser.get(f"{URL}/me").json()["name"] == person.name


def test_wrong_name_wrong_password_no_password_and_disabled_are_refused_in_the_same_words(site: Any) -> None:
    person, without, disabled = (a_user(site, Role.ADMIN) for _ in range(3))
    person.change(password=PASSWORD)
    disabled.change(password=PASSWORD, enabled=False)
    tries = [(person.name, "x" * 20), ("nobody", PASSWORD), (without.name, PASSWORD), (disabled.name, PASSWORD)]
    answers = [sign_in(site, *each) for each in tries]
    assert {answer.status_code for answer in answers} == {401}
    ((code, _),) = {(answer.json()["code"], answer.json()["detail"]) for answer in answers}
    assert code == "password.invalid"
    assert len(site.audit(action="sign_in.failed")) == 1


def test_a_disabled_user_is_out_at_once_and_back_when_enabled(site: Any) -> None:
    person = a_user(site, Role.ADMIN)
    browser = person.browser()
    person.change(enabled=False)
    answer = person.client.get(f"{URL}/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "auth.invalid")
    assert "disabled" in answer.json()["detail"]
    assert browser.get(f"{URL}/me").status_code == 401
    person.change(enabled=True)
    assert person.client.get(f"{URL}/me").status_code == 200
    assert browser.get(f"{URL}/me").status_code == 401, "its session has ended"


def test_another_password_ends_all_other_sessions_and_needs_the_one_before(either_site: Any) -> None:
    site = either_site
    person = a_user(site, Role.VIEWER)
    first, second = person.browser(), site.browser(name=person.name, password=PASSWORD)
    body = {"current": "something else", "password": "another fine password"}
    assert first.put(f"{URL}/me/password", json=body).json()["code"] == "password.invalid"
    first.put(f"{URL}/me/password", json={**body, "current": PASSWORD}).raise_for_status()
    assert [browser.get(f"{URL}/me").status_code for browser in (first, second)] == [200, 401]
    assert sign_in(site, person.name, PASSWORD).status_code == 401
    assert sign_in(site, person.name, "another fine password").status_code == 204
    assert told(site, person.id)[-1] == (person.id, "user.changed", {"password": True})


def test_a_password_changed_by_token_ends_all_sessions(site: Any) -> None:
    person = a_user(site, Role.VIEWER)
    browser = person.browser()
    assert browser.get(f"{URL}/me").json()["has_password"]
    body = {"current": PASSWORD, "password": "another fine password"}
    person.client.put(f"{URL}/me/password", json=body).raise_for_status()
    assert browser.get(f"{URL}/me").status_code == 401


def test_an_account_without_a_password_is_told_who_gives_it_one(site: Any) -> None:
    answer = a_user(site, Role.VIEWER).client.put(f"{URL}/me/password", json={"current": "x", "password": PASSWORD})
    assert (answer.status_code, answer.json()["code"]) == (401, "password.invalid")
    assert "has no password" in answer.json()["detail"]


def test_passwords_are_kept_as_argon2_and_repeated_nowhere(site: Any) -> None:
    person = a_user(site, Role.VIEWER)
    person.change(password=PASSWORD)
    with site.database.read() as s:
        assert s.get(User, person.id).password_hash.startswith("$argon2id$")
    assert PASSWORD not in site.admin.get(f"{URL}/audit").text + site.admin.get(f"{URL}/users").text
    refused = site.admin.patch(f"{URL}/users/{person.id}", json={"password": "short-secret"[:11]})
    assert refused.status_code == 422
    assert "short-secre" not in refused.text
    assert "at least 12" in refused.text
    both = site.client().post(f"{URL}/session", json={"name": "ada", "password": PASSWORD, "token": "t"})
    assert both.status_code == 422
    assert PASSWORD not in both.text


def test_a_token_is_shown_once_listed_and_revoked(either_site: Any) -> None:
    site = either_site
    person = a_user(site, Role.VIEWER)
    created = person.client.post(f"{URL}/tokens", json={"name": "laptop", "expires_seconds": 3600}).json()
    assert created["token"].startswith(user_tokens.PREFIX)
    assert created["scopes"] == ["read"]
    listed = {token["name"]: token for token in person.client.get(f"{URL}/tokens").json()["items"]}
    assert "token" not in listed["laptop"]
    assert listed["laptop"]["used_at"] is None
    client = site.client(created["token"])
    assert client.get(f"{URL}/me").json()["scopes"] == ["read"]
    again = site.admin.get(f"{URL}/users/{person.id}/tokens").json()["items"]
    (seen,) = [token for token in again if token["name"] == "laptop"]
    assert datetime.fromisoformat(seen["used_at"]) >= datetime.fromisoformat(seen["created_at"])
    assert person.client.post(f"{URL}/tokens", json={"name": "laptop"}).json()["code"] == "token.conflict"
    person.client.delete(f"{URL}/tokens/{created['id']}").raise_for_status()
    assert client.get(f"{URL}/me").status_code == 401
    assert person.client.delete(f"{URL}/tokens/{created['id']}").json()["code"] == "token.not_found"
    assert [action for _, action, _ in told(site, created["id"])] == ["token.created", "token.revoked"]
    assert created["token"] not in site.admin.get(f"{URL}/audit").text


def test_the_database_holds_no_token(site: Any) -> None:
    person = a_user(site, Role.VIEWER)
    with site.database.read() as s:
        row = s.get(UserToken, person.token_id)
    assert site.client(row.token_hash).get(f"{URL}/me").status_code == 401
    assert user_tokens.PREFIX not in row.token_hash


def test_others_tokens_are_nobodys_business(site: Any) -> None:
    one, other = a_user(site, Role.RESEARCHER), a_user(site, Role.RESEARCHER)
    assert one.client.delete(f"{URL}/tokens/{other.token_id}").status_code == 404
    assert other.client.get(f"{URL}/me").status_code == 200
    assert [token["id"] for token in one.client.get(f"{URL}/tokens").json()["items"]] == [one.token_id]


def test_a_token_makes_none_that_may_do_more(site: Any) -> None:
    person = a_user(site, Role.VIEWER)
    only_write = person.with_token([Scope.WRITE])
    answer = only_write.post(f"{URL}/tokens", json={"name": "more", "scopes": ["read", "write"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "auth.forbidden")
    admin = a_user(site, Role.ADMIN)
    own = f"{URL}/users/{admin.client.get(f'{URL}/me').json()['id']}/tokens"
    answer = admin.with_token([Scope.WRITE]).post(own, json={"name": "more", "scopes": ["read", "write"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "auth.forbidden")
    less = person.client.post(f"{URL}/tokens", json={"name": "keda", "scopes": ["metrics"]}).json()
    assert (less["scopes"], site.client(less["token"]).get("/metrics").status_code) == (["metrics"], 200)


def test_the_last_use_is_written_once_a_minute_at_most(site: Any) -> None:
    person = a_user(site, Role.VIEWER)

    def used() -> datetime | None:
        with site.database.read() as s:
            return s.get(UserToken, person.token_id).used_at

    person.client.get(f"{URL}/me")
    first = used()
    person.client.get(f"{URL}/me")
    assert used() == first
    site.expire(UserToken, "used_at", person.token_id, 61)
    person.client.get(f"{URL}/me")
    assert used() >= first


def test_users_of_one_name_made_at_once_are_one(site: Any) -> None:
    statuses: list[int] = []

    def make() -> None:
        client = site.client(site.context.admin.value)
        statuses.append(client.post(f"{URL}/users", json={"name": "ada", "role": "viewer"}).status_code)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201, 409, 409, 409]
