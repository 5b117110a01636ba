"""Task messages reach a real Redis after the commit, and a Redis that is down fails no request."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from ferret_api.broker import Broker
from ferret_cli.stack import broker as embedded
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.repositories import gauges
from tests.api.receiver import eventually
from tests.refusals import refused


class Redis:
    """A server of our own, with a password, that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        prepared = embedded.prepare(folder)
        self.command = prepared.child.command
        self.url = prepared.url
        self.client = redis.Redis.from_url(self.url, protocol=2)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        eventually(self.answers, 20)

    def answers(self) -> bool:
        try:
            return self.client.ping()
        except redis.ConnectionError:
            return False

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)

    def close(self) -> None:
        self.client.close()
        self.stop()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, need: Any) -> Iterator[Redis]:
    need(embedded.find_program() is not None, "a broker: apt-get install redis-server")
    server = Redis(tmp_path_factory.mktemp("redis"))
    yield server
    server.close()


@pytest.fixture
def queue(server: Redis) -> Redis:
    server.client.flushdb()
    return server


def messages(queue: Redis, name: str) -> list[tuple[str, list[str]]]:
    found = [json.loads(raw) for raw in queue.client.lrange(name, 0, -1)]
    assert all(message["content-type"] == "application/json" for message in found)
    return [
        (message["headers"]["task"], json.loads(base64.b64decode(message["body"]))[0]) for message in reversed(found)
    ]


@pytest.mark.redis
def test_a_submitted_experiment_is_handed_to_the_aggregation_queue(
    queue: Redis, serve: Any, make_settings: Any
) -> None:
    live = serve(make_settings(broker_url=queue.url))
    experiment_id = live.site.submit()
    assert messages(queue, "aggregate") == [("ferret.coordinate", [experiment_id])]
    live.site.start(experiment_id)
    (assignment_id,) = live.site.open_round(experiment_id, simulated=["client-001"])
    assert messages(queue, "train") == [("ferret.train", [assignment_id])]
    assert messages(queue, "aggregate") == [("ferret.coordinate", [experiment_id])]
    with live.site.database.read() as s:  # one message of an experiment is in the queue, and nobody has taken it
        assert {task: number for task, number in gauges.read(s).unsent.items() if number} == {TaskName.EVALUATE: 1}
    assert live.admin.get("/readyz").json()["ready"]


@pytest.mark.redis
def test_messages_that_no_worker_has_are_counted(queue: Redis) -> None:
    broker = Broker(queue.url)
    assert broker.lengths() == dict.fromkeys(Queue, 0)
    broker.send_question("que_1")
    broker.send_question("que_2")
    assert broker.lengths() == dict.fromkeys(Queue, 0) | {Queue.PLAYGROUND: 2}
    broker.close()


def test_a_broker_that_does_not_answer_has_no_lengths() -> None:
    broker = Broker("redis://127.0.0.1:1/0")
    assert broker.lengths() is None
    broker.close()


@pytest.mark.redis
def test_a_broker_that_comes_back_is_used_again(queue: Redis, serve: Any, make_settings: Any) -> None:
    live = serve(make_settings(broker_url=queue.url))
    live.site.submit()
    queue.stop()
    second = live.site.submit()
    assert live.admin.get("/readyz").status_code == 503
    queue.start()
    queue.client.flushdb()
    third = live.site.submit()
    assert messages(queue, "aggregate") == [("ferret.coordinate", [second]), ("ferret.coordinate", [third])]
    eventually(lambda: live.admin.get("/readyz").status_code == 200)  # what was found may be a second old
    with live.site.database.read() as s:
        assert sum(gauges.read(s).unsent.values()) == 0


def test_a_broker_that_is_down_fails_no_request_and_loses_nothing(site: Any) -> None:
    start = time.monotonic()
    experiment_id = site.submit()
    with site.database.read() as s:
        assert sum(gauges.read(s).unsent.values()) == 1
    answer = site.admin.post(f"/api/v1/experiments/{experiment_id}:cancel")
    assert answer.status_code == 200
    assert time.monotonic() - start < 5
    with site.database.read() as s:
        assert sum(gauges.read(s).unsent.values()) == 0, "what is over calls for nothing"


def test_a_broker_that_hangs_is_given_up_soon() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        broker = Broker(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        start = time.monotonic()
        with refused("server.not_ready", "the broker does not answer"):
            broker.check()
        assert time.monotonic() - start < 10
        broker.close()
