from __future__ import annotations

import json

import pytest

from ferret_core.protocol.resources.experiments import Experiment
from ferret_sdk.http import retry
from ferret_sdk.http.transport import Transport
from ferret_sdk.service.run import Run
from tests.refusals import refused


def line(seq: int, type: str = "round.opened") -> str:
    event = {"seq": seq, "type": type, "round": seq, "data": {}, "time": "2026-01-01T00:00:00Z"}
    return f"id: {seq}\nevent: {type}\ndata: {json.dumps(event)}\n\n"


@pytest.fixture
def run(server, experiment):
    return Run(Transport(server.url), Experiment.model_validate(experiment))


def streams(*texts):
    """The streams one after the other, each broken off at its end; then empty ones."""
    left = list(texts)
    return lambda exchange: exchange.events(left.pop(0) if left else "")


def to_the_end(*texts):
    """The streams one after the other; then the server knows of no more events."""
    left = list(texts)
    return lambda exchange: exchange.events(left.pop(0)) if left else exchange.send(204, b"")


def test_a_broken_stream_is_taken_up_where_it_broke(server, run):
    broken = line(2) + line(3)[:20]
    server.answer = to_the_end(line(1), broken, "", line(2) + line(3) + line(4, "experiment.completed"))
    assert [event.seq for event in run.events()] == [1, 2, 3, 4]
    assert [request.headers["last-event-id"] for request in server.requests] == ["0", "1", "2", "2", "4"]


def test_an_experiment_that_was_given_more_rounds_goes_on_after_its_end(server, run):
    extended = line(2, "experiment.extended") + line(3, "experiment.completed")
    server.answer = to_the_end(line(1, "experiment.completed"), extended)
    assert [event.seq for event in run.events()] == [1, 2, 3]


def test_it_starts_after_the_event_asked_for(server, run):
    server.answer = to_the_end(line(8, "experiment.failed"))
    assert [event.seq for event in run.events(after=7)] == [8]
    assert server.requests[0].headers["last-event-id"] == "7"


def test_nothing_is_left_to_tell_of_a_finished_experiment(server, run):
    server.answer = lambda exchange: exchange.send(204, b"")
    assert list(run.events(after=9)) == []


def test_a_server_that_only_ever_breaks_is_given_up(server, run, monkeypatch):
    monkeypatch.setattr(retry, "LONGEST_WAIT", 0.02)
    server.answer = streams()
    with refused("server.unreachable"):
        list(run.events())


def test_an_event_that_is_none_is_an_error_not_an_endless_loop(server, run):
    server.answer = streams("data: {broken\n\n")
    with refused("server.unexpected"):
        list(run.events())
