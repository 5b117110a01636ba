"""Figures for Prometheus: requests as they are answered, and the service's state as the database has it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ferret_db.database import Database
from ferret_db.repositories import gauges

State = TypeVar("State", bound=StrEnum)


METHODS = {"DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"}
OTHER = "other"


class RequestFigures:
    """Counts and latencies by route template: nothing that a caller makes up becomes a label."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ["method", "route"]
        self._answered = Counter("ferret_http_requests", "Answers", [*labels, "status"], registry=self.registry)
        self._seconds = Histogram(
            "ferret_http_seconds", "Seconds until an answer began", labels, registry=self.registry
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._answered.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)


class RequestMeter:
    """Measures every request until its answer begins: streams stay open for as long as they like. Pure ASGI."""

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
                self.figures.answered(method, route, message["status"], time.perf_counter() - start)
            await send(message)

        await self.app(scope, receive, send_measured)


class _States(Collector):
    """Reads the counts when Prometheus asks."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def collect(self) -> Iterable[Metric]:
        with self.database.read() as s:
            found = gauges.read(s)
        yield _by_state("experiments", found.experiments)
        yield _by_state("rounds", found.rounds)
        yield _by_state("assignments", found.assignments)
        yield GaugeMetricFamily(
            "ferret_outbox_unsent", "Task messages not handed to the broker yet", value=found.outbox_unsent
        )


def _by_state(name: str, counts: Mapping[State, int]) -> Metric:
    family = GaugeMetricFamily(f"ferret_{name}", f"{name.capitalize()} by state", labels=["state"])
    for state, number in counts.items():
        family.add_metric([state], number)
    return family


def respond(figures: RequestFigures, database: Database) -> Response:
    """Both sets of figures in Prometheus' text format."""
    states = CollectorRegistry()
    states.register(_States(database))
    text = generate_latest(figures.registry) + generate_latest(states)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
