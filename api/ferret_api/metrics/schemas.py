"""Metrics as the API shows them: one series per name."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_api.schemas import Resource


class MetricPoint(Resource):
    """One value, with the three axes it can be drawn over: round, time and bytes sent."""

    round: int = Field(description="0 is the base model")
    value: float
    time: datetime
    bytes_up: int = Field(description="Bytes sent by all participants up to and including this round")


class MetricSeries(Resource):
    """One metric over the rounds, in order."""

    name: str
    points: list[MetricPoint]


class MetricSeriesList(Resource):
    """All series asked for, by name."""

    series: list[MetricSeries]
