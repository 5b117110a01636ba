"""Questions for work that are held: answered when something changes, from memory while nothing does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import event, update

from ferret_api.participants import last_seen, long_poll_group, long_poll_groups
from ferret_api.participants.long_poll_group import PollTag, wait_seconds
from ferret_api.settings import ApiSettings
from ferret_db.engine import lifecycle, membership
from ferret_db.repositories import participants
from ferret_db.tables import Assignment, Participant
from tests.api.conftest import ASSIGNMENT, bearer
from tests.api.receiver import eventually

QUICK: dict[str, Any] = {"stream_poll_seconds": 0.05, "poll_seconds": 0.1}


class Place:
    """A participant that asks a live server, by connections of its own."""

    def __init__(self, live: Any, token: str) -> None:
        self._client = httpx.Client(base_url=live.url, headers=bearer(token), timeout=20)
        self.tag = ""

    def ask(self, wait: int | None = None, tag: str | None = None) -> httpx.Response:
        headers = {} if wait is None else {"Prefer": f"wait={wait}"}
        if known := self.tag if tag is None else tag:
            headers["If-None-Match"] = known
        answer = self._client.get(ASSIGNMENT, headers=headers)
        self.tag = answer.headers.get("etag", "")
        return answer

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def make_place() -> Iterator[Callable[[Any, str], Place]]:
    made = list[Place]()

    def make(live: Any, token: str) -> Place:
        made.append(Place(live, token))
        return made[-1]

    yield make
    for place in made:
        place.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as opened:
        yield opened


@pytest.fixture
def experiment(live: Any) -> str:
    return live.site.running(participants={"edge": 2, "simulated": 0})


@pytest.fixture
def place(live: Any, experiment: str, make_place: Callable[[Any, str], Place]) -> Place:
    """A participant that knows that there is nothing to do."""
    found = make_place(live, live.site.enrol(experiment, "site-a"))
    assert found.ask().json()["assignment"] is None
    assert found.tag.startswith('W/"')
    return found


def held_until(pool: ThreadPoolExecutor, live: Any, asking: Callable[[], httpx.Response]) -> Future[httpx.Response]:
    before = live.app.state.long_poll_groups.held
    answer = pool.submit(asking)
    eventually(lambda: answer.done() or live.app.state.long_poll_groups.held > before)
    assert not answer.done(), answer.result().text
    return answer


def test_it_is_answered_with_work_as_soon_as_a_round_opens(
    live: Any, experiment: str, place: Place, pool: ThreadPoolExecutor
) -> None:
    answer = held_until(pool, live, lambda: place.ask(wait=20))
    begin = time.monotonic()
    live.site.open_round(experiment, edge=["site-a"])
    found = answer.result(10)
    assert time.monotonic() - begin < 5
    assert found.status_code == 200
    assert found.json()["assignment"]["task"]["participant"] == "site-a"
    assert "etag" not in found.headers


def test_nothing_changes_for_as_long_as_it_would_wait(live: Any, place: Place) -> None:
    begin = time.monotonic()
    found = place.ask(wait=1)
    assert 0.9 < time.monotonic() - begin < 10
    assert (found.status_code, found.content) == (304, b"")
    assert found.headers["retry-after"] == "0"
    assert found.headers["preference-applied"] == "wait=1"
    figures = live.admin.get("/metrics").text
    line = next(line for line in figures.splitlines() if "ferret_http_seconds_sum" in line and ASSIGNMENT in line)
    assert float(line.split()[-1]) < 0.9, "what was held on purpose is no latency"


def test_without_a_wait_it_is_answered_at_once(place: Place) -> None:
    begin = time.monotonic()
    found = place.ask()
    assert time.monotonic() - begin < 5
    assert found.status_code == 304
    assert found.headers["retry-after"] == "1"
    assert "preference-applied" not in found.headers
    without_a_tag = place.ask(tag="")
    assert without_a_tag.status_code == 200
    assert 0.05 <= without_a_tag.json()["retry_after_seconds"] <= 0.15


def test_unchanged_is_told_without_a_look_at_the_state_of_the_experiment(
    live: Any, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.ask()
    asked = list[str]()
    monkeypatch.setattr(live.app.state.batches.questions, "do", asked.append)
    for _ in range(20):
        assert place.ask().status_code == 304
    assert not asked


def test_who_asks_is_recognised_from_memory(live: Any, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.ask()
    place.ask()
    looked = list[str]()
    monkeypatch.setattr(participants, "by_tokens", lambda s, tokens: looked.extend(tokens))
    for _ in range(20):
        assert place.ask().status_code == 304
    assert not looked


@pytest.mark.parametrize("elsewhere", [False, True], ids=["by this process", "by another process"])
def test_who_is_removed_is_recognised_no_more(
    live: Any, experiment: str, place: Place, pool: ThreadPoolExecutor, elsewhere: bool
) -> None:
    place.ask()
    tag = place.tag
    answer = held_until(pool, live, lambda: place.ask(wait=20))
    if elsewhere:
        with live.site.database.begin() as s:
            membership.revoke(s, "admin", experiment, "site-a")
    else:
        live.admin.post(f"/api/v1/experiments/{experiment}/participants/site-a:revoke", json={}).raise_for_status()
    assert answer.result(10).json()["code"] == "participant.revoked"
    refused = place.ask(tag=tag)
    assert (refused.status_code, refused.json()["code"]) == (403, "participant.revoked")


def test_who_is_recognised_from_memory_is_given_no_work_without_a_look(
    live: Any, experiment: str, place: Place
) -> None:
    place.ask()
    place.ask()
    tag = place.tag
    live.site.open_round(experiment, edge=["site-a"])
    with live.site.database.begin() as s:
        s.execute(update(Participant).values(token_hash="another"))
    assert place.ask(tag="").status_code == 401
    assert place.ask(wait=5, tag=tag).status_code == 401


def test_few_hear_at_once_of_every_step_of_the_others(
    live: Any, experiment: str, place: Place, pool: ThreadPoolExecutor
) -> None:
    answer = held_until(pool, live, lambda: place.ask(wait=20))
    live.site.enrol(experiment, "site-b")
    found = answer.result(10)
    assert found.json()["waiting"] == {"awaited": "round", "round": 1, "done": 0, "total": 0}
    assert found.json()["retry_after_seconds"] < 0.1, "the next question is held, so it may come at once"


def test_many_hear_of_the_others_when_their_time_is_over(
    live: Any, experiment: str, place: Place, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_poll_group, "FEW", 0)
    answer = held_until(pool, live, lambda: place.ask(wait=2))
    live.site.enrol(experiment, "site-b")
    time.sleep(0.5)
    assert not answer.done()
    assert answer.result(10).status_code == 200


def test_who_has_no_work_in_a_round_is_held_until_the_next(
    live: Any, experiment: str, place: Place, pool: ThreadPoolExecutor
) -> None:
    live.site.open_round(experiment, simulated=["client-001"])
    assert place.ask(tag="").json()["waiting"]["awaited"] == "contributions"
    assert place.ask().status_code == 304
    held = held_until(pool, live, lambda: place.ask(wait=20))
    with live.site.database.begin() as s:
        lifecycle.pause(s, experiment)
    assert held.result(10).json()["experiment_state"] == "paused"


def test_a_lease_that_runs_out_ends_the_wait(
    live: Any, experiment: str, place: Place, pool: ThreadPoolExecutor
) -> None:
    """A participant that was killed and comes back waits for its own lease, and no longer."""
    (assignment,) = live.site.open_round(experiment, edge=["site-a"])
    assert place.ask(tag="").json()["assignment"]["fence"] == 1
    live.site.expire(Assignment, "lease_until", assignment, seconds=-2)
    assert place.ask(tag="").json()["assignment"] is None
    begin = time.monotonic()
    found = held_until(pool, live, lambda: place.ask(wait=20)).result(10)
    assert found.json()["assignment"]["fence"] == 2
    assert time.monotonic() - begin < 8


def test_the_end_is_told(live: Any, experiment: str, place: Place, pool: ThreadPoolExecutor) -> None:
    answer = held_until(pool, live, lambda: place.ask(wait=20))
    live.site.move(experiment, "cancel").raise_for_status()
    assert answer.result(10).json()["experiment_state"] == "cancelled"
    assert place.ask(wait=20).status_code in {200, 304}, "nothing is held any more"


def test_a_newer_question_takes_the_place_of_the_older_and_a_server_that_stops_answers_it(
    live: Any, place: Place, pool: ThreadPoolExecutor
) -> None:
    tag = place.tag
    older = held_until(pool, live, lambda: place.ask(20, tag))
    newer = pool.submit(lambda: place.ask(20, tag))
    found = older.result(10)
    assert found.status_code == 304
    assert found.headers["retry-after"] == "1", "two that run with one token do not chase each other"
    begin = time.monotonic()
    live.server.should_exit = True
    assert newer.result(10).status_code == 304
    assert time.monotonic() - begin < 10


def test_no_more_are_held_than_allowed(
    serve: Callable[[ApiSettings], Any],
    make_settings: Callable[..., ApiSettings],
    make_place: Callable[[Any, str], Place],
    pool: ThreadPoolExecutor,
) -> None:
    live = serve(make_settings(max_held=1, **QUICK))
    experiment = live.site.running(participants={"edge": 3, "simulated": 0})
    first, second = (make_place(live, live.site.enrol(experiment, name)) for name in ("site-a", "site-b"))
    first.ask()
    second.ask()
    answer = held_until(pool, live, lambda: first.ask(wait=3))
    begin = time.monotonic()
    refused = second.ask(wait=20)
    assert time.monotonic() - begin < 10
    assert refused.status_code == 304
    assert refused.headers["retry-after"] == "1"
    assert "preference-applied" not in refused.headers
    assert answer.result(10).status_code == 304


def test_another_process_hears_of_the_change_too(
    live: Any,
    serve: Callable[[ApiSettings], Any],
    make_settings: Callable[..., ApiSettings],
    experiment: str,
    make_place: Callable[[Any, str], Place],
    pool: ThreadPoolExecutor,
) -> None:
    """Two services on one database: a tag of one is good at the other, and what one changes wakes who waits there."""
    other = serve(make_settings(**QUICK))
    token = live.site.enrol(experiment, "site-a")
    here, there = make_place(live, token), make_place(other, token)
    there.tag = here.ask().headers["etag"]
    answer = held_until(pool, other, lambda: there.ask(wait=20))
    live.site.open_round(experiment, edge=["site-a"])
    assert answer.result(10).json()["assignment"]["task"]["participant"] == "site-a"


def test_a_board_nobody_asks_for_is_given_up(
    live: Any, experiment: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.ask()
    feeds = live.app.state.feeds
    assert len(feeds._feeds) == 1
    monkeypatch.setattr(long_poll_groups, "KEPT_SECONDS", 0.0)
    with live.site.database.begin() as s:
        lifecycle.pause(s, experiment)
    eventually(lambda: not feeds._feeds)


def test_they_are_woken_a_few_at_a_time(
    serve: Callable[[ApiSettings], Any],
    make_settings: Callable[..., ApiSettings],
    make_place: Callable[[Any, str], Place],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(long_poll_group, "TOGETHER", 1)
    live = serve(make_settings(polls_per_second=4, **QUICK))
    experiment = live.site.running(participants={"edge": 5, "simulated": 0})
    places = [make_place(live, live.site.enrol(experiment, f"site-{n}")) for n in range(4)]
    tag = places[0].ask().headers["etag"]
    answered = list[float]()

    def ask(place: Place) -> None:
        assert place.ask(20, tag).status_code == 200
        answered.append(time.monotonic())

    threads = [threading.Thread(target=ask, args=[place]) for place in places]
    for thread in threads:
        thread.start()
    eventually(lambda: live.app.state.long_poll_groups.held == 4)
    with live.site.database.begin() as s:
        lifecycle.pause(s, experiment)
    for thread in threads:
        thread.join()
    assert max(answered) - min(answered) > 0.5


@pytest.mark.parametrize(
    ("header", "tag"),
    [
        ('W/"12/3.1.1.2"', PollTag(12, "3.1.1.2")),
        ('"12/3"', PollTag(12, "3")),
        ('W/"other", W/"7/1.2"', PollTag(7, "1.2")),
        ("*", None),
        ("", None),
        ('W/"x/3"', None),
        (f'W/"{"9" * 40}/3"', None),
    ],
)
def test_a_tag_is_read_as_it_was_written(header: str, tag: PollTag | None) -> None:
    assert PollTag.read(header) == tag
    if tag is not None:
        assert PollTag.read(str(tag)) == tag


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("wait=30", 30), ("respond-async, wait=5", 5), ('Wait="7"', 7), ("", 0), ("wait=x", 0), ("nowait=3", 0)],
)
def test_a_preference_to_wait_is_read(header: str, seconds: int) -> None:
    assert wait_seconds(header) == seconds


def test_one_that_waits_is_noted_as_there(
    live: Any, experiment: str, place: Place, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_seen, "NOTE_SECONDS", 0.05)

    async def note_for_a_while() -> None:
        """As the server does, which is in the middle of a minute."""
        with suppress(TimeoutError):
            await asyncio.wait_for(live.app.state.presence.run(), 1)

    held_until(pool, live, lambda: place.ask(wait=2))
    live.site.expire_all(Participant, "seen_at", 600)
    asyncio.run(note_for_a_while())
    (found,) = live.admin.get(f"/api/v1/experiments/{experiment}/participants").json()["items"]
    assert datetime.now(UTC) - datetime.fromisoformat(found["seen_at"]) < timedelta(minutes=9)


def test_questions_of_one_that_waits_write_nothing(live: Any, place: Place) -> None:
    written = list[str]()

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(("SELECT", "BEGIN", "PRAGMA")):
            written.append(statement)

    engine = live.site.database._engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        for _ in range(10):
            assert place.ask().status_code == 304
            assert place.ask(tag="").status_code == 200
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert not written
