"""``ferret status`` at a server."""

from __future__ import annotations

import json
from typing import Any

from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.engine import task_attempts
from ferret_db.repositories import workers
from tests.ferret_cli.commands.conftest import Cli


def test_it_tells_of_parts_queues_and_workers_and_fails_where_a_part_is_missing(live: Any, cli: Cli) -> None:
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
