"""What goes on beside a measurement comes as often as it says."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from statistics import median

from ferret_bench.measure.background import repeated


def test_what_a_slow_call_kept_from_coming_comes_at_once() -> None:
    came = list[float]()
    caught_up = threading.Event()

    def act() -> None:
        came.append(time.monotonic())
        if len(came) == 1:
            time.sleep(1)  # twenty calls late
        if len(came) == 15:
            caught_up.set()

    with repeated(act, 0.05):
        assert caught_up.wait(30)
    assert median(later - earlier for earlier, later in pairwise(came[1:15])) < 0.025
