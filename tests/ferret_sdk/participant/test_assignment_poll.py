"""Asking for work: questions that the server holds, and what lies between that cuts them off."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.resources.participants import NextAssignment
from ferret_sdk.http.transport import Transport, read_model
from ferret_sdk.participant import assignment_poll
from ferret_sdk.participant.assignment_poll import LONGEST_HOLD, AssignmentPoll
from tests import documents

WAITING = {"awaited": "participants", "round": 0, "done": 1, "total": 2}
IDLE = {"experiment_state": "running", "retry_after_seconds": 0.02, "assignment": None, "waiting": WAITING}
TAG = 'W/"3/1.2"'


def idle(exchange: Any) -> None:
    exchange.json(IDLE, ETag=TAG)


def unchanged(exchange: Any) -> None:
    exchange.send(304, b"", ETag=TAG, Retry_After="7")


def cut_off(exchange: Any) -> None:
    exchange.drop()


@pytest.fixture
def asking(server: Any) -> AssignmentPoll:
    member = documents.membership(server.url, "site-a")
    return AssignmentPoll(Transport(server.url, "token"), member, lambda progress: None, None)


def sent(server: Any, name: str) -> list[str | None]:
    return [request.headers.get(name) for request in server.requests]


def test_a_known_answer_is_asked_for_again_by_its_tag_and_held(server: Any, asking: AssignmentPoll) -> None:
    server.script(idle, unchanged)
    first = asking.ask()
    again = asking.ask()
    assert sent(server, "if-none-match") == [None, TAG]
    assert sent(server, "prefer") == [f"wait={LONGEST_HOLD}"] * 2
    assert first == read_model(NextAssignment, IDLE)
    assert again == first.model_copy(update={"retry_after_seconds": 7.0})


def test_an_unchanged_answer_requests_no_new_keys(server: Any, asking: AssignmentPoll) -> None:
    server.script(lambda exchange: exchange.json({**IDLE, "prekeys": 0}, ETag=TAG), unchanged)
    assert [asking.ask().prekeys for _ in range(2)] == [0, None]


def test_a_server_that_knows_no_tags_is_asked_as_ever(server: Any, asking: AssignmentPoll) -> None:
    server.script(lambda exchange: exchange.json(IDLE))
    for _ in range(3):
        assert asking.ask().waiting == read_model(NextAssignment, IDLE).waiting
    assert sent(server, "if-none-match") == [None] * 3


@pytest.mark.parametrize("tag", ["", "no quotes", '"' + "x" * 300 + '"'])
def test_a_tag_that_is_none_is_not_sent_back(server: Any, asking: AssignmentPoll, tag: str) -> None:
    server.script(lambda exchange: exchange.json(IDLE, ETag=tag))
    asking.ask()
    asking.ask()
    assert sent(server, "if-none-match") == [None] * 2


def test_a_proxy_that_ends_silent_connections_gets_shorter_questions(server: Any, asking: AssignmentPoll) -> None:
    server.script(idle, cut_off, idle, unchanged, unchanged)
    for _ in range(4):
        assert asking.ask().waiting == read_model(NextAssignment, IDLE).waiting
    assert sent(server, "if-none-match") == [None, TAG, None, TAG, TAG]
    half = LONGEST_HOLD // 2
    assert sent(server, "prefer")[3:] == [f"wait={half}", f"wait={half + 1}"], "longer again, while it goes well"


def test_an_outage_does_not_make_the_questions_shorter(
    server: Any, asking: AssignmentPoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignment_poll.Outage, "wait", lambda outage, error: None)
    monkeypatch.setattr(assignment_poll, "ATTEMPTS", 1)
    server.script(idle, *[cut_off] * 6, unchanged)
    for _ in range(2):
        asking.ask()
    assert sent(server, "prefer") == [f"wait={LONGEST_HOLD}"] * 8


def test_a_pause_is_as_long_as_the_server_asks_and_bounded(
    server: Any, asking: AssignmentPoll, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = list[float]()
    monkeypatch.setattr(assignment_poll.time, "sleep", slept.append)
    server.script(
        lambda exchange: exchange.json({**IDLE, "retry_after_seconds": 120.5}, ETag=TAG),
        lambda exchange: exchange.send(304, b"", Retry_After="200"),
        lambda exchange: exchange.send(304, b"", Retry_After="0"),
        lambda exchange: exchange.send(304, b"", Retry_After="100000"),
    )
    for _ in range(4):
        asking.wait(asking.ask())
    assert slept == [120.5, 200, assignment_poll.SHORTEST_PAUSE, assignment_poll.LONGEST_PAUSE]
