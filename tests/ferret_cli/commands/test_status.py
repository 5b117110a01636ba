"""``ferret status`` at a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.engine import task_attempts
from ferret_db.repositories import workers
from tests.api.conftest import ADMIN
from tests.api.conftest import make_settings as make_settings
from tests.api.conftest import serve as serve


@pytest.fixture
def live(serve: Any, make_settings: Any) -> Any:
    return serve(make_settings())


@pytest.fixture
def cli(live: Any, ferret_in_process: Any) -> Callable[..., Any]:
    def run(*arguments: str) -> Any:
        return ferret_in_process(*arguments, FERRET_URL=live.url, FERRET_TOKEN=ADMIN)

    return run


def test_it_tells_of_parts_queues_and_workers_and_fails_where_a_part_is_missing(
    live: Any, cli: Callable[..., Any]
) -> None:
    experiment_id = live.site.running()
    (assignment_id,) = live.site.open_round(experiment_id, simulated=["client-001"])
    with live.site.database.begin() as s:
        who = workers.WorkerIdentity("train-gpu-7-a1", Queue.TRAIN, "gpu-box", 7, "cuda")
        task_attempts.begin(s, TaskName.TRAIN, assignment_id, who, strikes=3)
    ended = cli("status")
    assert ended.returncode == 1
    for told in ("start Redis", "1 running", "sqlite", "gpu-box", f"train {experiment_id}", "playground"):
        assert told in ended.stdout
    document = json.loads(cli("status", "--json").stdout)
    assert document["workers"][0]["host"] == "gpu-box"
    assert document["parts"]["broker"]["ready"] is False
