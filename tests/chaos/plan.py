"""The sequence of kills that a seed stands for."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

LONGEST_DELAY = 0.3
VICTIMS = {"train": 6, "aggregate": 4, "evaluate": 1, "coordinate": 3, "api": 3, "edge": 2, "broker": 3, "flush": 3}
"""Who is killed how often beside the others: a worker at that task, the API, a real participant, the broker, or all
that the broker holds."""
SESSIONS = {"sessions": 3}
"""On PostgreSQL also every connection to the database."""


class Kill(NamedTuple):
    """``delay`` seconds after the experiment's event number ``after``, ``victim`` is killed."""

    after: int
    delay: float
    victim: str


def draw(seed: int, kills: int, events: range, weights: Mapping[str, int]) -> list[Kill]:
    """Kills spread over ``events``, no two after the same one; every victim is among them if there are enough.

    Raises ``ValueError`` where there are fewer events than kills.
    """
    random = Random(seed)
    moments = sorted(random.sample(events, kills))
    victims = [*weights, *random.choices(list(weights), list(weights.values()), k=kills)][:kills]
    random.shuffle(victims)
    return [Kill(after, random.uniform(0, LONGEST_DELAY), item) for after, item in zip(moments, victims, strict=True)]
