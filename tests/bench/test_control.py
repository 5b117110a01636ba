"""What the document says follows from what was measured; how fast anything was is never asserted."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from ferret_bench._control import databases, rounds
from ferret_bench._control.rounds import Sample
from ferret_bench.measure.statistics import spread
from tests.refusals import refused


def test_control_is_what_is_left_without_the_mathematics() -> None:
    reported = datetime(2026, 1, 1)
    committed, opened = reported + timedelta(seconds=0.5), reported + timedelta(seconds=0.75)
    assert rounds._parts(reported, committed, opened, 0.375) == {
        "control": 0.375,
        "commit": 0.125,
        "open": 0.25,
        "mathematics": 0.375,
    }


def test_growth_is_that_of_a_round_in_each_half() -> None:
    samples = [Sample(number, 100 + 20 * number, {"api": 1000 + 3 * max(0, number - 55)}) for number in range(106)]
    growth = rounds._growth(samples, 105)
    assert growth["rows_per_round"] == [pytest.approx(20), pytest.approx(20)]
    assert growth["bytes_per_round"] == {"api": [pytest.approx(0), pytest.approx(3)]}
    assert rounds._growth(samples[:3], 2)["rows_per_round"] == [None, None]


def test_a_hundredth_lies_above_the_99th_percentile() -> None:
    found = spread([float(value) for value in range(1, 101)])
    assert found == {"p50": 50.5, "p99": 99.0, "max": 100.0}


@pytest.mark.parametrize(
    ("server", "told"),
    [
        (None, databases.SETTING),
        ("postgresql://127.0.0.1:1/x", "Connection refused"),
        ("postgresql+psycopg://127.0.0.1:1/x", "Connection refused"),
        ("host=127.0.0.1 port=1", "cannot be reached: Could not parse"),
    ],
)
def test_without_a_server_postgresql_is_skipped_with_the_reason(monkeypatch, server, told) -> None:
    if server is None:
        monkeypatch.delenv(databases.SETTING, raising=False)
    else:
        monkeypatch.setenv(databases.SETTING, server)
    assert told in (databases.missing("postgresql") or "")
    assert databases.missing("sqlite") is None


def test_what_keeps_the_service_from_starting_is_said(tmp_path) -> None:
    from ferret_bench._control.stack import serving

    with refused("server.not_ready", "FERRET_DATABASE_URL"), serving(tmp_path / "home", "mysql://x/y"):
        pass
