"""Many and slow readers of event streams: one poller serves them all, and none holds up another."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from ferret_api.events import poller
from tests.api.receiver import eventually

pytestmark = pytest.mark.timeout(120)

PATIENCE = 30.0


class Reader:
    """One stream, read only when asked."""

    def __init__(self, live: Any, experiment_id: str, after: int = 0, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", live.port))
        head = (
            f"GET /api/v1/experiments/{experiment_id}/events/stream HTTP/1.1\r\nHost: x\r\nLast-Event-ID: {after}\r\n"
        )
        self.socket.sendall(f"{head}Authorization: {live.admin.headers['Authorization']}\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()
        self.socket.close()

    def numbers(self) -> Iterator[int]:
        """Of the events, as far as they are complete."""
        number = 0
        for line in self.file:
            if line.startswith(b"id: "):
                number = int(line[4:])
            elif line == b"\n" and number:
                yield number
                number = 0

    def read_to(self, last: int) -> list[int]:
        numbers = list[int]()
        for number in self.numbers():
            numbers.append(number)
            if number >= last:
                break
        return numbers


def test_the_database_is_asked_as_often_for_many_readers_as_for_one(live: Any) -> None:
    experiment_id = live.site.submit()
    feeds = live.app.state.feeds
    asked = list[str]()
    with ExitStack() as held:
        readers = [held.enter_context(Reader(live, experiment_id)) for _ in range(40)]
        assert all(reader.read_to(1) == [1] for reader in readers)
        eventually(lambda: len(feeds._feeds) == 1)
        settled = feeds.looks + 2  # every reader may still take its last look
        eventually(lambda: feeds.looks >= settled)
        event.listen(live.site.database._engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
        before = feeds.looks
        live.site.append(experiment_id, 3)
        assert all(reader.read_to(4) == [2, 3, 4] for reader in readers)
        looks = feeds.looks - before
        read = sum("FROM event" in statement for statement in asked)
        assert feeds.streams == 40
        assert len(feeds._feeds) == 1
    assert 1 <= read <= looks + 1
    eventually(lambda: feeds.streams == 0 and len(feeds._feeds) == 0)
    before = feeds.looks
    time.sleep(0.3)
    assert feeds.looks == before, "with the last reader the poller has ended"


def test_everybody_gets_every_event_once_whenever_they_come(live: Any) -> None:
    experiment_id = live.site.submit()
    writer = threading.Thread(target=live.site.append, args=(experiment_id, 80))
    writer.start()
    read = list[list[int]]()

    def follow(breaks: bool) -> None:
        numbers = list[int]()
        while not numbers or numbers[-1] < 81:
            after = numbers[-1] if numbers else 0
            with Reader(live, experiment_id, after) as reader:
                numbers += reader.read_to(min(after + 7, 81) if breaks else 81)
        read.append(numbers)

    followers = [threading.Thread(target=follow, args=(number % 2 == 0,)) for number in range(10)]
    for follower in followers:
        follower.start()
        time.sleep(0.02)
    for thread in [*followers, writer]:
        thread.join()
    assert read == [list(range(1, 82))] * 10


def test_a_reader_that_is_too_slow_is_dropped_and_resumes_without_loss(
    live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poller, "MOST_WAITING", 4)
    experiment_id = live.site.submit()
    feeds = live.app.state.feeds
    with Reader(live, experiment_id, receive_buffer=4096) as slow, Reader(live, experiment_id) as quick:
        assert quick.read_to(1) == [1]
        eventually(lambda: feeds.streams == 2)
        last = 1
        while not feeds.dropped:
            live.site.append(experiment_id, 1, size=400_000)
            assert quick.read_to(last + 1) == [last + 1], "the other reader gets everything meanwhile"
            last += 1
            assert last < 100, "it was never dropped"
        seen = list(slow.numbers())  # to the end of the stream, which comes in order
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) < last
    with Reader(live, experiment_id, after=seen[-1]) as again:
        assert again.read_to(last) == list(range(len(seen) + 1, last + 1))


def test_a_number_from_the_future_hides_nothing_from_the_others(live: Any) -> None:
    experiment_id = live.site.submit()
    feeds = live.app.state.feeds
    with Reader(live, experiment_id, after=10**6) as ahead:
        eventually(lambda: len(feeds._feeds) == 1)
        assert ahead.file.readline().startswith(b"HTTP/1.1 200")
        with Reader(live, experiment_id) as reader:
            assert reader.read_to(1) == [1]
            live.site.append(experiment_id, 1)
            assert reader.read_to(2) == [2]


@pytest.mark.parametrize("limit", [{"max_streams": 2}, {"max_streams_per_token": 2}])
def test_streams_are_limited_and_a_place_is_free_again_when_one_ends(
    serve: Any, make_settings: Any, limit: dict[str, int]
) -> None:
    live = serve(make_settings(stream_poll_seconds=0.05, **limit))
    experiment_id = live.site.submit()
    address = f"{live.url}/api/v1/experiments/{experiment_id}/events/stream"
    with Reader(live, experiment_id) as first, Reader(live, experiment_id) as second:
        assert first.read_to(1) == second.read_to(1) == [1]
        answer = httpx.get(address, headers=live.admin.headers, timeout=PATIENCE)
        assert (answer.status_code, answer.json()["code"]) == (429, "stream.refused")
        assert answer.headers["Retry-After"]
        assert live.admin.get("/api/v1/experiments").status_code == 200, "requests are not streams"
    eventually(lambda: live.app.state.feeds.streams == 0)
    with Reader(live, experiment_id) as third:
        assert third.read_to(1) == [1]


@pytest.mark.slow
def test_the_events_of_one_experiment_do_not_reach_the_readers_of_another(live: Any) -> None:
    mine, other = live.site.submit(), live.site.submit()
    with Reader(live, mine) as reader, Reader(live, other) as neighbour:
        assert reader.read_to(1) == neighbour.read_to(1) == [1]
        eventually(lambda: len(live.app.state.feeds._feeds) == 2)
        live.site.append(other, 1)
        live.admin.post(f"/api/v1/experiments/{mine}:cancel")
        said = reader.file.read().decode()
    told = [json.loads(line[6:])["type"] for line in said.splitlines() if line.startswith("data: ")]
    assert told == ["experiment.cancelled"]
