"""An experiment of four rounds on a server that tells of it event by event."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ferret_sdk import Service
from ferret_sdk.service.run import Run
from tests import documents

ROUNDS = 4
TIME = "2026-01-01T00:00:{:02}Z"
METRICS = {
    0: {"eval_loss": 3.0},
    1: {"train_loss": 2.5, "bytes_up": 10.0},
    2: {"train_loss": 2.0, "bytes_up": 10.0, "eval_loss": 2.0, "rouge_l/übung": 20.0},
    3: {"train_loss": math.nan, "bytes_up": 10.0},
    4: {"train_loss": 1.0, "bytes_up": 10.0, "eval_loss": 1.0, "rouge_l/übung": 40.0},
}
"""By round; those with ``eval_loss`` were evaluated."""
VALUES = {
    name: {number: row[name] for number, row in METRICS.items() if math.isfinite(row.get(name, math.nan))}
    for name in ("eval_loss", "train_loss", "bytes_up", "rouge_l/übung")
}
"""What a tool has to show in the end: by metric and round."""
# The evaluation of round 2 comes after round 3.
HAPPENED = [
    ("experiment.started", None),
    ("round.evaluated", 0),
    *(("round.committed", number) for number in (1, 2, 3)),
    ("round.evaluated", 2),
    ("round.committed", 4),
    ("round.evaluated", 4),
    ("experiment.completed", None),
]
EVENTS = [
    {"seq": seq, "type": type, "round": round, "data": {}, "time": TIME.format(seq)}
    for seq, (type, round) in enumerate(HAPPENED, start=1)
]
SPEC = {
    "name": "Übung 1",
    "rounds": ROUNDS,
    "model": {"source": "/m"},
    "dataset": {"name": "jsonl", "train": "/d", "shares": [0.5, 0.5]},
    "participants": {"simulated": 2},
    "evaluation": {"every": 2},
    "algorithm": {"name": "ferret", "local": {"learning_rate": 1e-3}},
}


def _events(exchange: Any) -> None:
    after = int(exchange.headers["last-event-id"])
    coming = EVENTS[after : after + 3]  # the connection breaks after three
    if coming:
        exchange.events("".join(f"id: {event['seq']}\ndata: {json.dumps(event)}\n\n" for event in coming))
    else:
        exchange.send(204, b"")


def _round(number: int) -> dict[str, Any]:
    return documents.round_(number, metrics=METRICS[number])


@pytest.fixture
def run(server: Any, experiment: dict[str, Any]) -> Run:
    told = experiment | {"name": "renamed", "tags": ["K search"], "state": "completed", "spec": SPEC, "rounds": ROUNDS}

    def answer(exchange: Any) -> None:
        if exchange.path.endswith("/events/stream"):
            _events(exchange)
        elif exchange.path.endswith("/metrics"):
            exchange.json(documents.metric_series(eval_loss=[(0, 3.0)]))
        elif "/rounds/" in exchange.path:
            exchange.json(_round(int(exchange.path.rpartition("/")[2])))
        else:
            exchange.json(told)

    server.answer = answer
    return Service(server.url).experiment(experiment["id"])


class Stopped(Exception):
    """Somebody has stopped the export."""


@pytest.fixture
def interrupted() -> Any:
    """``export(…)`` that is stopped in the middle, begun again, and then once more when nothing is new."""

    def export(run: Run, to: Any, folder: Any = None) -> list[int]:
        from ferret_sdk.exporters import export_metrics

        def stop(row: Any) -> None:
            if row.round == 3:
                raise Stopped

        with pytest.raises(Stopped):
            export_metrics(run, to, folder, on_round=stop)
        return [export_metrics(run, to, folder) for _ in range(2)]

    return export
