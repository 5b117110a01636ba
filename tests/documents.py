"""Answers of the REST API, complete, as tests change them."""

from __future__ import annotations

from typing import Any

from ferret_core.protocol.signatures import new_key
from ferret_sdk.participant.membership import Membership

Json = dict[str, Any]
TIME = "2026-01-01T00:00:00Z"


def page(*items: Json, next_cursor: str | None = None) -> Json:
    return {"items": [*items], "next_cursor": next_cursor}


def experiment(**changes: Any) -> Json:
    plain = {
        "id": "exp_0123456789abcdef",
        "name": "demo",
        "state": "running",
        "algorithm": "ferret",
        "dataset": "jsonl",
        "rounds": 3,
        "round": 1,
        "participants": 3,
        "spec": {},
        "error": None,
        "base_digest": None,
        "digest": None,
        "metrics": {"eval_loss": {"first": 2.5, "last": 1.5, "best": 1.5}},
        "bytes_up": 10,
        "bytes_down": 20,
        "created_at": TIME,
        "started_at": None,
        "finished_at": None,
    }
    return plain | changes


def listed_experiment(**changes: Any) -> Json:
    of_algorithm = {"seed": 0, "seed_group": "", "K": None, "bytes_per_round": None, "learning_rate": None}
    of_progress = {"stalled": None, "bytes_per_upload": None, "archived_at": None, "estimated_seconds_left": None}
    return experiment(project="default", tags=[], **of_algorithm, **of_progress) | changes


def round_(number: int = 1, **changes: Any) -> Json:
    plain = {
        "number": number,
        "attempt": 1,
        "state": "committed",
        "base_digest": "0" * 64,
        "digest": None,
        "participants": 3,
        "required_contributions": None,
        "accepted": 3,
        "rejected": 0,
        "bytes_up": 0,
        "bytes_down": 0,
        "groups": [],
        "metrics": {},
        "opened_at": TIME,
        "deadline_at": TIME,
        "frozen_at": None,
        "committed_at": None,
        "evaluated_at": None,
        "error": None,
    }
    return plain | changes


def artifact(**changes: Any) -> Json:
    plain = {
        "id": "art_0123456789abcdef",
        "kind": "checkpoint",
        "round": 1,
        "best": False,
        "name": "model.safetensors",
        "size": 1,
        "digest": "0" * 64,
        "created_at": TIME,
        "href": "/",
    }
    return plain | changes


def metric_series(**series: list[tuple[int, float]]) -> Json:
    """Values with their rounds, by name; each round sends 100 bytes."""
    return {
        "rounds_per_point": 1,
        "series": [
            {"name": name, "points": [_point(number, value) for number, value in points]}
            for name, points in series.items()
        ],
    }


def _point(number: int, value: float) -> Json:
    values = {"value": value, "least": value, "greatest": value, "count": 1, "lost": 0}
    time = f"2026-01-01T00:00:{number:02}Z"
    return {"round": number, "first": number, **values, "time": time, "bytes_up": 100 * number}


def receipt(digest: str, size: int, round_number: int = 1) -> Json:
    """Of an accepted contribution."""
    return {"digest": digest, "size": size, "round": round_number, "accepted": True}


def membership(url: str = "https://ferret.test", name: str = "clinic", **changes: Any) -> Membership:
    """What a site keeps of its enrolment."""
    plain = {
        "experiment": "exp_0123456789abcdef",
        "participant": "par_0123456789abcdef",
        "display_name": name,
        "token": "a-secret-token",
        "code": "0" * 64,
        "key": new_key(),
    }
    return Membership(url=url, name=name, **(plain | changes))
