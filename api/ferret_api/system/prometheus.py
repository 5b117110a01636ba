"""Metrics for Prometheus: requests to this API, and the service's state from the database."""

from __future__ import annotations

import os
import time
from collections import Counter as Counted
from collections.abc import Iterable, Mapping
from typing import TypeVar

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ferret_core.protocol.task_names import QUEUE_OF, TaskName
from ferret_db.database import Database
from ferret_db.engine import stalls
from ferret_db.repositories import experiments, gauges

Label = TypeVar("Label", bound=str)
METHODS = {"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"}
OTHER = "other"
HELD = "ferret.held_seconds"
"""Key in the ASGI scope for the deliberate hold time of a response, in seconds."""


class RequestFigures:
    """Request counts and latencies by route template, so that callers cannot create labels."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ["method", "route"]
        self._answered = Counter("ferret_http_requests", "Answers", [*labels, "status"], registry=self.registry)
        self._seconds = Histogram(
            "ferret_http_seconds", "Seconds until the response started", labels, registry=self.registry
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._answered.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


class RequestMeter:
    """ASGI middleware that measures each request until its response begins, less the time it was held on purpose."""

    def __init__(self, app: ASGIApp, figures: RequestFigures) -> None:
        self.app = app
        self.figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()

        async def send_measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", OTHER)
                method = scope["method"] if scope["method"] in METHODS else OTHER
                seconds = time.perf_counter() - start - scope.get(HELD, 0.0)
                self.figures.answered(method, route, message["status"], seconds)
            await send(message)

        await self.app(scope, receive, send_measured)


class _States(Collector):
    def __init__(self, database: Database) -> None:
        self.database = database

    def collect(self) -> Iterable[Metric]:
        with self.database.read() as s:
            found = gauges.read(s)
            stalled = Counted(stall.code for row in experiments.unfinished(s) if (stall := stalls.stall(s, row)))
        yield _gauge("experiments", "Experiments by state", "state", found.experiments)
        yield _gauge("experiments_stalled", "Experiments that cannot make progress, by reason", "code", stalled)
        yield _gauge("rounds", "Rounds by state", "state", found.rounds)
        yield _gauge("round_seconds", "Last committed round, from opening to commit", "experiment", found.round_seconds)
        yield _gauge("assignments", "Assignments by state", "state", found.assignments)
        yield _gauge("leases", "Leases on assignments, held and expired", "state", found.leases)
        yield _gauge("contributions_rejected", "Refused uploads by reason", "code", found.rejected)
        yield _by_task("queue_depth", "Work that is waiting for a worker", found.waiting)
        yield _by_task("outbox_unsent", "Task messages not yet handed to the broker", found.unsent)
        yield _by_task("tasks_dead", "Tasks given up after too many attempts", found.dead)
        yield _gauge("workers", "Workers alive by queue", "queue", found.workers)
        yield _gauge("workers_busy", "Workers alive with a task in hand, by queue", "queue", found.busy)


def _of_all(figures: RequestFigures) -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return figures.registry
    shared = CollectorRegistry()
    MultiProcessCollector(shared)
    return shared


def _gauge(name: str, help: str, label: str, values: Mapping[Label, float]) -> Metric:
    family = GaugeMetricFamily(f"ferret_{name}", help, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family


def _by_task(name: str, help: str, counts: Mapping[TaskName, int]) -> Metric:
    family = GaugeMetricFamily(f"ferret_{name}", help, labels=["task", "queue"])
    for task, number in counts.items():
        family.add_metric([task, QUEUE_OF[task]], number)
    return family


def respond(figures: RequestFigures, database: Database) -> Response:
    """Returns all metrics in Prometheus' text format. Requests are summed over all API processes on the machine."""
    states = CollectorRegistry()
    states.register(_States(database))
    text = generate_latest(_of_all(figures)) + generate_latest(states)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
