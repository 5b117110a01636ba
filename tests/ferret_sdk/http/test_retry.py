"""How long a server that is away is waited for."""

from __future__ import annotations

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_sdk.http import retry
from ferret_sdk.http.retry import Outage
from tests.refusals import refused

AWAY = FerretError("server.unreachable", "it does not answer")


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def wait_without_end(outage: Outage) -> None:
    while True:
        outage.wait(AWAY)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(retry, "time", clock)
    return clock


def test_pauses_grow_to_five_minutes_and_an_outage_of_days_is_waited_out(clock: Clock) -> None:
    outage = Outage()
    while outage.seconds < 3 * 24 * 3600:
        outage.wait(AWAY)
    bounds = [5, 10, 20, 40, 80, 160] + [300] * (len(clock.slept) - 6)
    assert all(bound <= pause <= 1.25 * bound for bound, pause in zip(bounds, clock.slept, strict=True))


def test_those_who_wait_for_the_same_server_do_not_come_back_at_once(clock: Clock) -> None:
    for _ in range(50):
        Outage().wait(AWAY)
    assert len({round(pause, 2) for pause in clock.slept}) > 25


@pytest.mark.parametrize("limit", [0.0, 3.0, 60.0, 3600.0])
def test_the_limit_is_kept_and_reached(clock: Clock, limit: float) -> None:
    outage = Outage(limit)
    with refused("server.unreachable", "does not answer"):
        wait_without_end(outage)
    assert sum(clock.slept) == pytest.approx(limit)
