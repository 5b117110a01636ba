"""Time on a noisy machine: sides of a comparison take turns, and medians are taken over the turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch

Action = Callable[[], object]


class Turns(NamedTuple):
    """Number of repetitions: at least ``least``, then until ``seconds`` have passed, but at most ``most``."""

    least: int = 3
    most: int = 15
    seconds: float = 2.0


USUAL = Turns()


class Timings(NamedTuple):
    """Seconds of every turn of every side."""

    seconds: Mapping[str, Sequence[float]]

    def median(self, side: str) -> float:
        return median(self.seconds[side])

    def ratio(self, side: str, other: str) -> float:
        """Returns ``side``'s time over ``other``'s: the median over the turns of the ratio within one turn."""
        return median(a / b for a, b in zip(self.seconds[side], self.seconds[other], strict=True))

    def to_json(self) -> dict[str, Any]:
        """Median seconds of every side, and the number of turns."""
        turns = min(map(len, self.seconds.values()))
        return {"seconds": {side: self.median(side) for side in self.seconds}, "repetitions": turns}


def in_turns(sides: Mapping[str, Action], device: torch.device, turns: Turns = USUAL) -> Timings:
    """Times A, B, A, B, … after one turn that warms up and does not count."""
    for action in sides.values():
        seconds(action, device)
    taken: dict[str, list[float]] = {side: [] for side in sides}
    begin, done = perf_counter(), 0
    while done < turns.least or (done < turns.most and perf_counter() - begin < turns.seconds):
        for side, action in sides.items():
            taken[side].append(seconds(action, device))
        done += 1
    return Timings(taken)


def seconds(action: Action, device: torch.device) -> float:
    """One call, with what it left running on ``device``. Its result is freed after the clock has stopped."""
    _wait(device)
    begin = perf_counter()
    result = action()
    _wait(device)
    passed = perf_counter() - begin
    del result
    return passed


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
