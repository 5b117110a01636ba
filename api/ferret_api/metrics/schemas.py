"""Metrics as the API shows them: one series per name."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_api.schemas import Resource


class MetricPoint(Resource):
    """One value, or the mean of a few rounds' values, with the axes it can be drawn over: round, time, bytes sent."""

    round: int = Field(description="The last round that it stands for; 0 is the base model")
    first: int = Field(description="The first round that it stands for: the same one unless `points` thins out")
    value: float | None = Field(description="Mean of the values; null where none is a finite number")
    least: float | None
    greatest: float | None
    count: int = Field(description="Values in it")
    lost: int = Field(description="Values that are no finite numbers, besides")
    time: datetime
    bytes_up: int = Field(description="Bytes sent by all participants up to and including this round")


class MetricSeries(Resource):
    """One metric over the rounds, in order."""

    name: str
    points: list[MetricPoint]


class MetricSeriesList(Resource):
    """All series asked for, by name."""

    rounds_per_point: int = Field(description="Rounds that a point stands for at most; 1 where nothing is thinned out")
    series: list[MetricSeries]
