"""Metrics over the rounds: one series per name."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.resources.base import Resource
from ferret_core.protocol.sanitize import Line


class MetricPoint(Resource):
    """One value, or the mean of several rounds' values, with its position on the axes: round, time and bytes sent."""

    round: int = Field(description="The last round that it covers; 0 is the base model")
    first: int = Field(
        description=("The first round that it covers; equal to `round` unless `points` downsamples the series")
    )
    value: float | None = Field(description="Mean of the values; null if no value is finite")
    least: float | None = Field(description="Minimum of the values")
    greatest: float | None = Field(description="Maximum of the values")
    count: int = Field(description="Number of values covered")
    lost: int = Field(description="Number of non-finite values, not included in `count`")
    time: datetime
    bytes_up: int = Field(description="Bytes sent by all participants up to and including this round")


class MetricSeries(Resource):
    """One metric over the rounds, in order."""

    name: Line
    points: list[MetricPoint]


class MetricSeriesList(Resource):
    """The requested series by name."""

    rounds_per_point: int = Field(description="Maximum number of rounds per point; 1 without downsampling")
    series: list[MetricSeries]
