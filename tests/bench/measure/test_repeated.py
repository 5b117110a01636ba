"""What goes on beside a measurement comes as often as it says."""

from __future__ import annotations

import time

from ferret_bench.measure.repeated import repeated


def test_it_comes_as_often_however_long_it_takes() -> None:
    came = list[float]()

    def act() -> None:
        came.append(time.monotonic())
        time.sleep(0.03)

    begin = time.monotonic()
    with repeated(act, 0.05):
        time.sleep(2)
    passed = time.monotonic() - begin
    assert 0.95 * passed / 0.05 - 2 <= len(came) <= passed / 0.05
