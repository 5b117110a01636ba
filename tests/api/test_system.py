"""What the service says of itself, and what Prometheus reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import select

from ferret_core import __version__
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db import schema_version
from ferret_db.engine import assignments, task_attempts
from ferret_db.repositories import workers
from ferret_db.tables import Assignment, Experiment, Worker


def test_info(site: Any) -> None:
    assert site.admin.get("/api/v1/info").json() == {
        "name": "ferret",
        "version": __version__,
        "instance": site.context.admin.fingerprint,
        "database": "sqlite",
        "storage": "file",
        "formats": {"wire": 1, "projection": 1},
    }


def test_readiness_names_the_part_that_is_missing(site: Any) -> None:
    answer = site.client().get("/readyz")
    assert answer.status_code == 503
    found = answer.json()
    assert not found["ready"]
    assert found["database"] == found["migrations"] == {"ready": True, "detail": None}
    assert found["storage"] == {"ready": True, "detail": None}
    assert not found["broker"]["ready"]
    assert "start Redis" in found["broker"]["detail"]


def test_an_administrator_sees_the_whole_service_at_a_glance(either_site: Any) -> None:
    site = either_site
    experiment_id = site.running()
    (assignment_id,) = site.open_round(experiment_id, simulated=["client-001"])
    busy = workers.WorkerIdentity(f"train-gpu-7-{experiment_id}", Queue.TRAIN, "gpu", 7, "cuda")
    idle = workers.WorkerIdentity(f"aggregate-cpu-8-{experiment_id}", Queue.AGGREGATE, "cpu", 8, "cpu")
    silent = workers.WorkerIdentity(f"train-old-9-{experiment_id}", Queue.TRAIN, "old", 9, "cpu")
    with site.database.begin() as s:
        task_attempts.begin(s, TaskName.TRAIN, assignment_id, busy, strikes=3)
        workers.seen(s, idle)
        workers.seen(s, silent)
    site.expire(Worker, "seen_at", silent.id, seconds=60)
    found = site.admin.get("/api/v1/system").json()
    assert (found["version"], found["parts"]["ready"]) == (__version__, False)
    assert found["database"]["revision"] == schema_version.HEAD
    assert found["database"]["size"] > 100_000
    assert 0 < found["disk"]["free"] < found["disk"]["total"]
    assert found["experiments"]["running"] >= 1
    ours = {each["id"]: each for each in found["workers"]}
    assert {name: ours[busy.id][name] for name in ("host", "pid", "device", "alive", "task", "experiment")} == {
        "host": "gpu",
        "pid": 7,
        "device": "cuda",
        "alive": True,
        "task": "ferret.train",
        "experiment": experiment_id,
    }
    assert (ours[idle.id]["task"], ours[silent.id]["alive"]) == (None, False)
    trains = {queue["queue"]: queue for queue in found["queues"]}["train"]
    assert trains["workers"] >= 1
    assert trains["messages"] is None


def samples(text: str) -> dict[tuple[Any, ...], float]:
    """The values by name and sorted labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_reads_requests_by_route(site: Any) -> None:
    experiment_id = site.running()
    for _ in range(3):
        site.admin.get(f"/api/v1/experiments/{experiment_id}")
    site.admin.get("/api/v1/experiments/exp_nobody")
    site.admin.get("/no/such/page")
    site.admin.request("BREW", "/no/such/page")
    text = site.admin.get("/metrics").text
    found = samples(text)
    route = ("route", "/api/v1/experiments/{experiment_id}")
    assert found["ferret_http_requests_total", ("method", "GET"), route, ("status", "200")] == 3
    assert found["ferret_http_requests_total", ("method", "GET"), route, ("status", "404")] == 1
    assert found["ferret_http_seconds_count", ("method", "GET"), route] == 4
    assert "/no/such/page" not in text
    assert "BREW" not in text


@pytest.mark.about_database
def test_prometheus_reads_how_much_of_everything_there_is(either_site: Any) -> None:
    site = either_site
    site.expire_all(Experiment, "created_at", 3600)  # else those of other tests begin to stall during this one
    site.expire_all(Worker, "seen_at", 3600)
    before = samples(site.admin.get("/metrics").text)
    experiment_id = site.running(participants={"edge": 1, "simulated": 2})
    site.submit()
    participant = site.client(site.enrol(experiment_id, "site-a"))
    held, lost, _ = site.open_round(experiment_id, simulated=["client-001", "client-002"], edge=["site-a"])
    with site.database.begin() as s:
        for assignment_id in (held, lost):
            assignments.lease(s, assignment_id, 60)
        assignments.refuse(s, held, FerretError("round.closed", "too late"))
        assignments.refuse(s, held, FerretError("round.closed", "too late"))
        workers.seen(s, workers.WorkerIdentity("train-host-1", Queue.TRAIN, "host", 1, "cpu"))
        workers.seen(s, workers.WorkerIdentity("train-host-2", Queue.TRAIN, "host", 2, "cpu"), TaskName.TRAIN, held)
    site.expire(Assignment, "lease_until", lost)
    site.expire(Experiment, "created_at", experiment_id, 3600)
    second = site.running()
    site.committed(second)
    site.open_round(second, simulated=["client-001"], number=2)

    found = samples(site.admin.get("/metrics").text)
    grown = {key: value - before.get(key, 0) for key, value in found.items()}
    assert grown["ferret_experiments", ("state", "running")] == 2
    assert grown["ferret_experiments", ("state", "queued")] == 1
    assert found["ferret_experiments", ("state", "failed")] == 0
    assert grown["ferret_rounds", ("state", "open")] == 2
    assert grown["ferret_assignments", ("state", "leased")] == 2
    assert grown["ferret_leases", ("state", "held")] == 1
    assert grown["ferret_leases", ("state", "expired")] == 1
    train = ("queue", "train"), ("task", "ferret.train")
    assert grown["ferret_queue_depth", *train] == 1
    assert grown["ferret_outbox_unsent", ("queue", "aggregate"), ("task", "ferret.coordinate")] >= 1
    assert found["ferret_tasks_dead", *train] == 0
    assert grown["ferret_contributions_rejected", ("code", "round.closed")] == 2
    assert found["ferret_workers", ("queue", "train")] == 2
    assert found["ferret_workers_busy", ("queue", "train")] == 1
    assert found["ferret_workers_busy", ("queue", "aggregate")] == 0
    assert found["ferret_workers", ("queue", "aggregate")] == 0
    assert 0 <= found["ferret_round_seconds", ("experiment", second)] < 600
    assert ("ferret_round_seconds", ("experiment", experiment_id)) not in found
    assert grown["ferret_experiments_stalled", ("code", "aggregation_worker.missing")] == 1
    assert participant.get("/metrics").status_code == 403

    assert site.admin.post(f"/api/v1/experiments/{second}:pause").status_code == 200
    paused = samples(site.admin.get("/metrics").text)
    assert paused["ferret_queue_depth", *train] == found["ferret_queue_depth", *train] - 1, "it waits for nobody"


def test_every_figure_for_prometheus_is_documented(site: Any) -> None:
    site.committed(site.running())
    with site.database.begin() as s:
        (assignment_id,) = [row.id for row in s.scalars(select(Assignment))]
        assignments.refuse(s, assignment_id, FerretError("round.closed", "too late"))
    families = [family.name for family in text_string_to_metric_families(site.admin.get("/metrics").text)]
    documented = (Path(__file__).parents[2] / "docs/researchers/metrics.md").read_text()
    assert [name for name in families if f"`{name}`" not in documented and f"`{name}_total`" not in documented] == []
