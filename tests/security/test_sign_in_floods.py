"""Floods of sign-ins: they stop nobody else's requests, and no way around the limit of attempts is left."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from ferret_api.auth import passwords
from ferret_core.protocol.roles import Role
from tests.api.conftest import ADMIN, open_site
from tests.api.people import a_user
from tests.api.receiver import eventually
from tests.api.test_broker import server as server
from tests.security.api_process import ApiProcess
from tests.security.flood import post_all
from tests.security.test_floods import at

SESSION = "/api/v1/session"
INFO = "/api/v1/info"
LIMIT = 100


def guess(number: int = 0) -> str:
    return json.dumps({"name": f"nobody-{number}", "password": "a wrong password"})


@pytest.mark.parametrize("count", [90, pytest.param(400, marks=pytest.mark.slow)])
def test_simultaneous_sign_ins_hold_up_no_other_request(home: Path, count: int) -> None:
    guesses = [guess(number) for number in range(count)]
    with ApiProcess(home) as api, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as elsewhere:
        api.admin.get(INFO).raise_for_status()
        flood = elsewhere.submit(post_all, api.port, SESSION, guesses)
        meanwhile = 0
        while not flood.done():
            api.admin.get(INFO).raise_for_status()
            meanwhile += 1
        answers = flood.result()
    assert meanwhile > 10, "behind the sign-ins there would be a few"
    assert Counter(answers).keys() <= {401, 429}
    assert 1 <= answers.count(401) <= passwords.AT_ONCE + passwords.WAITING + 20, "few wait, the others are refused"


@pytest.fixture
def strict(make_settings: Any) -> Iterator[Any]:
    """A service that lets 5 failures of an address pass."""
    with open_site(make_settings(failures_per_minute=5)) as site:
        yield site


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (SESSION, {"name": "nobody", "password": "a wrong password"}, 401),
        (SESSION, {"token": "x" * 43}, 401),
        ("/api/v1/participants", {"code": "x" * 43, "display_name": "a"}, 403),
    ],
    ids=["passwords", "links", "codes"],
)
def test_a_known_token_lets_no_guess_pass_the_limit(strict: Any, path: str, body: dict[str, str], status: int) -> None:
    guesser, elsewhere = at(strict, "192.0.2.1", ADMIN), at(strict, "192.0.2.2", ADMIN)
    answers: list[int] = []
    for _ in range(8):
        assert elsewhere.get(INFO).status_code == 200, "the token is known again"
        answers.append(guesser.post(path, json=body).status_code)
    assert answers == [status] * 5 + [429] * 3
    assert guesser.get(INFO).status_code == 200, "the token itself stays good"
    stranger = at(strict, "192.0.2.3")
    assert [stranger.post(path, json=body).status_code for _ in range(8)] == answers


def test_attempts_with_a_password_count_before_they_are_answered(strict: Any) -> None:
    """Whatever becomes of them: an account of one's own is no reason to hash passwords all day."""
    person = a_user(strict, Role.VIEWER)
    person.change(password="correct horse battery staple")
    client = at(strict, "192.0.2.3")
    body = {"name": person.name, "password": "correct horse battery staple"}
    assert [client.post(SESSION, json=body).status_code for _ in range(7)] == [204] * 5 + [429] * 2


@pytest.mark.slow
def test_changing_a_password_is_an_attempt_too(strict: Any) -> None:
    person = a_user(strict, Role.VIEWER)
    person.change(password="correct horse battery staple")
    client = at(strict, "192.0.2.4", person.client.headers["Authorization"].partition(" ")[2])
    body = {"current": "a wrong password", "password": "another horse battery staple"}
    answers = [client.put("/api/v1/me/password", json=body).status_code for _ in range(7)]
    assert answers == [401] * 5 + [429] * 2


def test_nothing_is_hashed_for_a_client_that_has_left(
    serve: Any, make_settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = serve(make_settings())
    begun, go = [], threading.Event()

    def is_right(password: str, stored: str | None) -> bool:
        begun.append(password)
        assert go.wait(60)
        return False

    monkeypatch.setattr(passwords, "is_right", is_right)

    def sign_in(password: str) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", live.port), timeout=60)
        body = json.dumps({"name": "nobody", "password": password})
        head = [f"POST {SESSION} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
        connection.sendall("\r\n".join([*head, f"Content-Length: {len(body)}", "", body]).encode())
        return connection

    hashing = [sign_in("first") for _ in range(passwords.AT_ONCE)]
    eventually(lambda: len(begun) == passwords.AT_ONCE)
    leaving, staying = [sign_in("leaving") for _ in range(4)], sign_in("staying")
    open_ = live.site.context.passwords
    eventually(lambda: open_.open == passwords.AT_ONCE + 5)
    for connection in leaving:
        connection.close()
    live.admin.get(INFO).raise_for_status()  # and so the event loop has seen that they left
    go.set()
    for connection in [*hashing, staying]:
        with connection:
            assert b" 401 " in connection.recv(100)
    assert begun == ["first"] * passwords.AT_ONCE + ["staying"]


def test_beyond_the_queue_a_sign_in_is_refused_at_once(
    serve: Any, make_settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = serve(make_settings())
    go = threading.Event()
    monkeypatch.setattr(passwords, "is_right", lambda password, stored: not go.wait(60))
    statuses: list[int] = []
    body = {"name": "nobody", "password": "a wrong password"}

    def sign_in() -> None:
        statuses.append(live.admin.post(SESSION, json=body).status_code)

    most = passwords.AT_ONCE + passwords.WAITING
    threads = [threading.Thread(target=sign_in) for _ in range(most)]
    for thread in threads:
        thread.start()
    eventually(lambda: live.site.context.passwords.open == most)
    answer = live.admin.post(SESSION, json=body)
    assert (answer.status_code, answer.json()["code"]) == (429, "request.too_many")
    assert answer.headers["Retry-After"] == str(passwords.RETRY_SECONDS)
    assert live.admin.get(INFO).status_code == 200
    go.set()
    for thread in threads:
        thread.join()
    assert statuses == [401] * most


@pytest.mark.redis
@pytest.mark.parametrize(
    "guesses", ["tokens", *(pytest.param(guesses, marks=pytest.mark.slow) for guesses in ("links", "codes"))]
)
def test_two_processes_let_no_more_guesses_pass_than_one(home: Path, server: Any, guesses: str) -> None:
    path, body, headers = {
        "tokens": ("/api/v1/session/link", "", ["Authorization: Bearer " + "y" * 43]),
        "links": (SESSION, json.dumps({"token": "x" * 43}), []),
        "codes": ("/api/v1/participants", json.dumps({"code": "x" * 43, "display_name": "a"}), []),
    }[guesses]
    settings = {"FERRET_BROKER_URL": server.url}
    with ApiProcess(home, **settings) as first, ApiProcess(home, **settings) as second:
        answers = []
        for _ in range(6):  # in turns, and each time many at once
            for api in (first, second):
                answers += post_all(api.port, path, [body] * 25, *headers)
    assert answers.count(401) + answers.count(403) == LIMIT
    assert answers.count(429) == len(answers) - LIMIT
