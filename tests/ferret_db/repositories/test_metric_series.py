"""Curves as they are, and thinned out to one point for each bucket of rounds."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ferret_db.database import Database
from ferret_db.repositories import metric_series, metrics
from ferret_db.repositories.metric_series import RoundWindow, bucket_size
from ferret_db.tables import Metric

pytestmark = pytest.mark.about_database


def test_curves_carry_cumulative_bytes(database: Database, lab: Any) -> None:
    experiment = lab.start(rounds=3)
    for number, loss in ((1, 2.0), (2, 2.5)):
        lab.commit(lab.freeze(lab.get(experiment), number), train_loss=loss)
    with database.begin() as s:
        metrics.add(s, experiment.id, 0, {"eval_loss": 3.0})
        metrics.add(s, experiment.id, 2, {"eval_loss": 1.0})
    with database.read() as s:
        size, found = metric_series.curves(s, experiment.id)
        _, (only,) = metric_series.curves(s, experiment.id, "eval_loss")
        assert metric_series.curves(s, experiment.id, "nothing").series == []
    assert size == 1
    assert [curve.name for curve in found] == ["bytes_down", "bytes_up", "eval_loss", "train_loss"]
    assert [(point.first, point.round, point.value, point.bytes_up) for point in only.points] == [
        (0, 0, 3.0, 0),
        (2, 2, 1.0, 300),
    ]


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 2000))
def test_buckets_are_the_smallest_that_fit(first: int, span: int, points: int) -> None:
    last, size = first + span, bucket_size(first, first + span, points)
    assert size & (size - 1) == 0
    if points > 1 or first > 0:
        assert _buckets(first, last, size) <= points or size > last
    assert size == 1 or _buckets(first, last, size // 2) > points


@given(st.integers(0, 10**6), st.integers(1, 2000))
def test_a_run_that_grows_keeps_its_buckets_or_joins_neighbours(last: int, points: int) -> None:
    before, after = bucket_size(0, last, points), bucket_size(0, last + 1, points)
    assert after in {before, 2 * before}


VALUES = st.one_of(st.floats(-1e6, 1e6), st.just(math.inf), st.just(-math.inf))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.integers(0, 60), VALUES, min_size=1, max_size=40),
    st.integers(1, 20),
    st.integers(0, 30),
    st.integers(0, 40),
)
def test_a_point_is_its_rounds_least_mean_and_greatest(
    database: Database, lab: Any, values: dict[int, float], points: int, first: int, span: int
) -> None:
    experiment, window = lab.submit(), RoundWindow(first, first + span)
    with database.begin() as s:
        s.add_all(
            Metric(experiment_id=experiment.id, name="loss", round=round_, value=value)
            for round_, value in values.items()
        )
    with database.read() as s:
        size, found = metric_series.curves(s, experiment.id, "loss", points, window)
        (whole,) = metric_series.curves(s, experiment.id, "loss").series
    shown = {round_: value for round_, value in sorted(values.items()) if first <= round_ <= first + span}
    assert [point.round for point in whole.points] == sorted(values)
    if not shown:
        assert found == []
        return
    ((_, bucketed),) = found
    assert len(bucketed) <= max(points, 2)
    assert sum(point.count + point.lost for point in bucketed) == len(shown)
    for point in bucketed:
        inside = [value for round_, value in shown.items() if point.first <= round_ <= point.round]
        finite = [value for value in inside if math.isfinite(value)]
        assert math.ceil(point.first / size) == math.ceil(point.round / size)
        assert (point.count, point.lost) == (len(finite), len(inside) - len(finite))
        assert (point.least, point.greatest) == (min(finite, default=None), max(finite, default=None))
        mean = sum(finite) / len(finite) if finite else None
        assert point.value == (mean if mean is None else pytest.approx(mean, rel=1e-9, abs=1e-6))


@pytest.mark.parametrize("value", [1e308, -1e308])
def test_values_at_the_end_of_the_range_are_lost_rather_than_an_error(
    database: Database, lab: Any, value: float
) -> None:
    experiment = lab.submit()
    with database.begin() as s:
        for number in (1, 2, 3, 4):
            metrics.add(s, experiment.id, number, {"loss": value})
    with database.read() as s:
        ((_, (point,)),) = metric_series.curves(s, experiment.id, "loss", 1).series
    assert (point.value, point.count, point.lost) == (None, 0, 4)


def _buckets(first: int, last: int, size: int) -> int:
    return math.ceil(last / size) - math.ceil(first / size) + 1
