"""An open stream ends when its reader may no longer see the experiment, and who comes back is told why."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from ferret_api.events import access_check
from ferret_core.protocol.roles import Role
from ferret_db.repositories import projects, sessions
from ferret_db.tables import FIRST_PROJECT, BrowserSession, UserToken
from tests.api.conftest import ADMIN
from tests.api.people import PASSWORD, a_user

pytestmark = pytest.mark.timeout(60)

URL = "/api/v1"
CHECK_SECONDS = 0.5
FEW_SECONDS = 10
HEARTS = "hearts"
QUEUED, ACCEPTED = "event: experiment.queued", "event: contribution.accepted"


class Reader:
    """A user of the live server, by token or in a browser."""

    def __init__(self, live: Any, role: Role, *, browser: bool) -> None:
        self.live, self.person = live, a_user(live.site, role, HEARTS)
        headers = dict(self.person.client.headers)
        if browser:
            cookies = self.person.browser().cookies
            headers = {"Origin": live.url, "Cookie": "; ".join(f"{name}={cookies[name]}" for name in cookies)}
        self.client = httpx.Client(base_url=live.url, headers=headers, timeout=20)

    def stream(self, experiment_id: str, after: int = 0) -> Any:
        return self.client.stream("GET", f"{URL}/experiments/{experiment_id}/events/stream", params={"after": after})

    def change(self, **values: Any) -> None:
        self.person.change(**values)

    def leave(self) -> None:
        self.live.admin.delete(f"{URL}/projects/{HEARTS}/members/{self.person.id}").raise_for_status()

    def revoke(self) -> None:
        self.person.revoke()

    def sign_out(self) -> None:
        self.client.delete(f"{URL}/session").raise_for_status()

    def expire(self, table: Any) -> None:
        """The time of its tokens or sessions is over."""
        self.live.site.expire_all(table, "expires_at", 1, table.user_id == self.person.id)


@pytest.fixture
def make_reader(live: Any, experiment_id: str) -> Iterator[Callable[..., Reader]]:
    with ExitStack() as opened:

        def make(role: Role = Role.VIEWER, *, browser: bool = False) -> Reader:
            reader = Reader(live, role, browser=browser)
            opened.callback(reader.client.close)
            return reader

        yield make


@pytest.fixture
def experiment_id(live: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(access_check, "CHECK_SECONDS", CHECK_SECONDS)
    live.admin.post(f"{URL}/projects", json={"name": HEARTS}).raise_for_status()
    return live.site.submit(project=HEARTS)


def lines(response: httpx.Response) -> Iterator[str]:
    """What the stream says, without signs of life."""
    return (line for line in response.iter_lines() if line and not line.startswith(":"))


def ends_after(change: Callable[[], None], reader: Reader, experiment_id: str) -> list[str]:
    """What the reader is told between the change and the clean end of its stream, which comes within few seconds; the
    administrator's stream of the same experiment goes on."""
    address = f"{URL}/experiments/{experiment_id}/events/stream"
    with reader.live.admin.stream("GET", address) as response:
        told = lines(response)
        assert next(told) == QUEUED
        rest = _ended_after(change, reader, experiment_id)
        reader.live.site.append(experiment_id)
        assert ACCEPTED in told
    return rest


def _ended_after(change: Callable[[], None], reader: Reader, experiment_id: str) -> list[str]:
    with reader.stream(experiment_id) as response:
        told = lines(response)
        assert next(told) == QUEUED
        assert len([next(told), next(told)]) == 2
        time.sleep(1.5 * CHECK_SECONDS)
        change()
        changed = time.monotonic()
        rest = list(told)
    assert time.monotonic() - changed < FEW_SECONDS
    return rest


def problem(reader: Reader, experiment_id: str) -> tuple[int, str]:
    answer = reader.client.get(f"{URL}/experiments/{experiment_id}/events/stream", headers={"Last-Event-ID": "1"})
    return answer.status_code, answer.json()["code"]


def remove_elsewhere(reader: Reader) -> None:
    """As another process does."""
    with reader.live.site.database.begin() as s:
        projects.remove_member(s, HEARTS, reader.person.id)


NOT_FOUND, INVALID, MISSING = (404, "experiment.not_found"), (401, "auth.invalid"), (401, "auth.missing")
ENDS: dict[str, tuple[Callable[[Reader], None], bool, tuple[int, str]]] = {
    "removed": (Reader.leave, False, NOT_FOUND),
    "removed by another process": (remove_elsewhere, False, NOT_FOUND),
    "revoked": (Reader.revoke, False, INVALID),
    "expired": (lambda reader: reader.expire(UserToken), False, INVALID),
    "disabled": (lambda reader: reader.change(enabled=False), False, INVALID),
    "browser, removed": (Reader.leave, True, NOT_FOUND),
    "browser, signed out": (Reader.sign_out, True, MISSING),
    "browser, expired": (lambda reader: reader.expire(BrowserSession), True, MISSING),
    "browser, disabled": (lambda reader: reader.change(enabled=False), True, MISSING),
    "browser, another password": (lambda reader: reader.change(password=f"another {PASSWORD}"), True, MISSING),
}


@pytest.mark.parametrize("how", ENDS)
def test_the_stream_ends_and_who_comes_back_is_told_why(make_reader: Any, experiment_id: str, how: str) -> None:
    change, browser, refusal = ENDS[how]
    reader = make_reader(browser=browser)
    assert ends_after(lambda: change(reader), reader, experiment_id) == []
    assert problem(reader, experiment_id) == refusal


def test_an_administrator_who_is_none_any_more_sees_the_own_projects(
    live: Any, make_reader: Any, experiment_id: str
) -> None:
    elsewhere, reader = live.site.submit(project=FIRST_PROJECT), make_reader(Role.ADMIN)
    with reader.stream(experiment_id) as response:
        kept = lines(response)
        assert next(kept) == QUEUED
        assert ends_after(lambda: reader.change(role="viewer"), reader, elsewhere) == []
        live.site.start(experiment_id)
        assert "event: experiment.running" in kept
    assert problem(reader, elsewhere) == (404, "experiment.not_found")


def test_one_look_serves_all_streams_and_there_is_none_without_any(
    live: Any, make_reader: Any, experiment_id: str
) -> None:
    asked = list[str]()

    def looks() -> int:
        return sum("FROM memberships" in statement for statement in asked)

    readers = [make_reader() for _ in range(3)]
    event.listen(live.site.database._engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    with ExitStack() as opened:
        told = [lines(opened.enter_context(reader.stream(experiment_id))) for reader in readers * 5]
        assert {next(each) for each in told} == {QUEUED}
        time.sleep(0.2)
        asked.clear()
        time.sleep(2.5 * CHECK_SECONDS)
        assert 1 <= looks() <= 3
    time.sleep(0.5)
    asked.clear()
    time.sleep(1.5 * CHECK_SECONDS)
    assert looks() == 0


def test_a_stream_outlives_a_database_that_fails_for_a_while(live: Any, make_reader: Any, experiment_id: str) -> None:
    failed = list[str]()

    def fail(connection: Any, cursor: Any, statement: str, *given: Any) -> None:
        if "FROM memberships" in statement:
            failed.append(statement)
            raise sqlite3.OperationalError("disk I/O error")

    reader, engine = make_reader(), live.site.database._engine
    with reader.stream(experiment_id) as response:
        told = lines(response)
        assert next(told) == QUEUED
        event.listen(engine, "before_cursor_execute", fail)
        while not failed:
            time.sleep(0.05)
        event.remove(engine, "before_cursor_execute", fail)
        live.site.start(experiment_id)
        assert "event: experiment.running" in told


def test_where_nobody_can_tell_who_may_follow_nobody_does_until_they_come_back(
    make_reader: Any, experiment_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = make_reader()
    with monkeypatch.context() as broken:
        broken.setattr(access_check, "_users", lambda *given: 1 / 0)
        with reader.stream(experiment_id) as response:
            assert len(list(lines(response))) == 3
    with reader.stream(experiment_id) as response:
        assert next(lines(response)) == QUEUED


def test_claims_are_told_apart_on_both_databases(either_site: Any) -> None:
    ours, nobodys = either_site.submit(), "exp_0123456789abcdef"
    member, stranger, leaver = (
        a_user(either_site, Role.VIEWER),
        a_user(either_site, Role.VIEWER, project=None),
        a_user(either_site, Role.VIEWER),
    )
    leaver.revoke()
    with either_site.database.begin() as s:
        session = sessions.begin(s, member.id, either_site.context.admin.fingerprint, 60).secret
    tokens = [person.client.headers["Authorization"].removeprefix("Bearer ") for person in (member, stranger, leaver)]
    claims = {access_check.Claim(credential, ours) for credential in (*tokens, session, ADMIN, "never seen")}
    claims.add(access_check.Claim(tokens[0], nobodys))
    good = access_check.permitted(either_site.database, either_site.context.admin, claims)
    assert good == {access_check.Claim(credential, ours) for credential in (tokens[0], session, ADMIN)}
