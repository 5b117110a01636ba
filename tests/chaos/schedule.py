"""The sequence of strikes that a seed stands for."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

LONGEST_DELAY = 0.3
KILLED = {"train": 6, "aggregate": 4, "evaluate": 1, "coordinate": 3, "api": 3, "edge": 2, "broker": 3, "flush": 3}
"""Who is killed how often beside the others: a worker at that task, the API, a real participant, the broker, or all
that the broker holds."""
HANG = "hang "
HUNG = {"train": 2, "aggregate": 2, "evaluate": 1, "coordinate": 1, "api": 1, "edge": 1, "broker": 1}
"""Who is stopped instead (SIGSTOP), so that it neither works nor ends."""
VICTIMS = KILLED | {HANG + name: often for name, often in HUNG.items()}
SESSIONS = {"sessions": 3}
"""On PostgreSQL also every connection to the database."""


class Kill(NamedTuple):
    """``delay`` seconds after the experiment's event number ``after``, ``victim`` is killed or made to hang."""

    after: int
    delay: float
    victim: str

    @property
    def hangs(self) -> bool:
        return self.victim.startswith(HANG)

    @property
    def target(self) -> str:
        """The victim, whatever is done to it."""
        return self.victim.removeprefix(HANG)


def draw(seed: int, kills: int, events: range, weights: Mapping[str, int]) -> list[Kill]:
    """Kills spread over ``events``, no two after the same one; every victim is among them if there are enough.

    Raises ``ValueError`` where there are fewer events than kills.
    """
    random = Random(seed)
    moments = sorted(random.sample(events, kills))
    victims = [*weights, *random.choices(list(weights), list(weights.values()), k=kills)][:kills]
    random.shuffle(victims)
    return [Kill(after, random.uniform(0, LONGEST_DELAY), item) for after, item in zip(moments, victims, strict=True)]
