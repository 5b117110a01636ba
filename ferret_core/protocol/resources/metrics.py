"""Metrics over the rounds: one series for each name."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.resources.base import Resource
from ferret_core.protocol.sanitize import Line


class MetricPoint(Resource):
    """One value, or the mean of a few rounds' values, with the axes to draw it over: round, time and bytes sent."""

    round: int = Field(description="The last round that it covers; 0 is the base model")
    first: int = Field(description="The first round that it covers: the same as `round` unless `points` thins out")
    value: float | None = Field(description="Mean of the values; null if none is a finite number")
    least: float | None = Field(description="The smallest of the values")
    greatest: float | None = Field(description="The largest of the values")
    count: int = Field(description="How many values it covers")
    lost: int = Field(description="How many values are not finite numbers, which `count` leaves out")
    time: datetime
    bytes_up: int = Field(description="Bytes sent by all participants up to and including this round")


class MetricSeries(Resource):
    """One metric over the rounds, in order."""

    name: Line
    points: list[MetricPoint]


class MetricSeriesList(Resource):
    """The series that were asked for, by name."""

    rounds_per_point: int = Field(description="Rounds that a point covers at most; 1 if nothing is thinned out")
    series: list[MetricSeries]
