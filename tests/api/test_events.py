"""Events over a real server: in order, without loss, with an end, and never in the way of a shutdown."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx
import pytest

from ferret_api.events import poller
from ferret_db.repositories import events

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def live(serve: Any, make_settings: Any) -> Any:
    return serve(make_settings(stream_poll_seconds=0.05))


def parse(response: httpx.Response) -> Iterator[dict[str, str]]:
    """The fields of each event; comments are left out."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            yield fields
            fields = {}


def stream(live: Any, experiment_id: str, **request: Any) -> Any:
    return live.admin.stream("GET", f"/api/v1/experiments/{experiment_id}/events/stream", **request)


def append(live: Any, experiment_id: str, count: int) -> None:
    for _ in range(count):
        with live.site.database.begin() as s:
            events.add(s, experiment_id, "contribution.accepted", round=1, data={"size": 3})


def test_a_list_of_events(site: Any) -> None:
    experiment_id = site.running()
    address = f"/api/v1/experiments/{experiment_id}/events"
    items = site.admin.get(address).json()["items"]
    assert [(item["seq"], item["type"]) for item in items][:2] == [(1, "experiment.queued"), (2, "experiment.running")]
    assert items[0]["data"] == {"name": "toy"}
    assert set(items[0]) == {"seq", "type", "round", "data", "time"}
    assert site.admin.get(address, params={"after": 1, "limit": 1}).json()["items"] == items[1:2]


def test_a_stream_tells_what_happens_as_it_happens_and_ends_with_the_experiment(live: Any) -> None:
    experiment_id = live.site.submit()
    with stream(live, experiment_id) as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        assert response.headers["Cache-Control"] == "no-cache"
        told = parse(response)
        assert next(told)["event"] == "experiment.queued"
        live.site.start(experiment_id)
        assert next(told)["event"] == "experiment.running"
        live.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
        rest = list(told)
    assert rest[-1]["event"] == "experiment.cancelled"
    items = live.admin.get(f"/api/v1/experiments/{experiment_id}/events").json()["items"]
    assert json.loads(rest[-1]["data"]) == items[-1]
    assert rest[-1]["id"] == str(items[-1]["seq"])


def test_a_stream_resumes_without_loss_or_repetition_while_events_arrive(live: Any) -> None:
    experiment_id = live.site.submit()
    writer = threading.Thread(target=append, args=(live, experiment_id, 60))
    writer.start()
    seen: list[int] = []
    while len(seen) < 61:
        headers = {"Last-Event-ID": str(seen[-1])} if seen else {}
        with stream(live, experiment_id, headers=headers) as response:
            # After a few the connection breaks.
            seen += [int(event["id"]) for event in islice(parse(response), min(7, 61 - len(seen)))]
    writer.join()
    assert seen == list(range(1, 62))


def test_more_events_than_one_look_finds(live: Any) -> None:
    experiment_id = live.site.submit()
    append(live, experiment_id, 230)
    live.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    with stream(live, experiment_id) as response:
        assert [int(event["id"]) for event in parse(response)] == list(range(1, 233))


def test_the_header_of_a_browser_that_reconnects_wins_over_the_address(live: Any) -> None:
    experiment_id = live.site.running()
    live.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    with stream(live, experiment_id, params={"after": 1}) as response:
        assert next(parse(response))["id"] == "2"
    with stream(live, experiment_id, params={"after": 1}, headers={"Last-Event-ID": "2"}) as response:
        assert next(parse(response))["id"] == "3"


def test_after_the_last_event_a_browser_is_told_not_to_reconnect(live: Any) -> None:
    experiment_id = live.site.submit()
    live.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    with stream(live, experiment_id, headers={"Last-Event-ID": "2"}) as response:
        assert response.status_code == 204


@pytest.mark.parametrize(
    ("headers", "code"), [({"Last-Event-ID": "x"}, "request.invalid"), ({}, "experiment.not_found")]
)
def test_a_problem_is_answered_before_the_stream_begins(live: Any, headers: dict[str, str], code: str) -> None:
    answer = live.admin.get("/api/v1/experiments/exp_nobody/events/stream", headers=headers)
    assert answer.json()["code"] == code


def test_a_silent_stream_is_kept_alive(live: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(poller, "PING_SECONDS", 0.1)
    experiment_id = live.site.submit()
    with stream(live, experiment_id, params={"after": 1}) as response:
        assert next(response.iter_lines()).startswith(":")


def test_an_open_stream_does_not_hold_up_the_shutdown(live: Any) -> None:
    with stream(live, live.site.submit()) as response:
        told = parse(response)
        next(told)
        live.server.should_exit = True
        start = time.monotonic()
        assert list(told) == []  # a clean end, not a broken connection
        live.thread.join(timeout=10)
    assert time.monotonic() - start < 3


def test_streams_leave_no_database_connection_in_use(live: Any) -> None:
    experiment_id = live.site.submit()
    open_streams = [stream(live, experiment_id) for _ in range(30)]
    for opened in open_streams:
        assert next(parse(opened.__enter__()))["event"] == "experiment.queued"
    time.sleep(0.3)
    append(live, experiment_id, 1)  # a writer waits for nobody
    assert live.admin.get(f"/api/v1/experiments/{experiment_id}/events").json()["items"][-1]["seq"] == 2
    for opened in open_streams:
        opened.__exit__(None, None, None)
