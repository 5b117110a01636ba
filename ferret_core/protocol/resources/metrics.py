"""Metrics over the rounds: one series per name."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.ids import ParticipantName
from ferret_core.protocol.resources.base import Resource
from ferret_core.protocol.sanitize import Line

_RMS = "root mean square over the block's weights"


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


class UpdateAgreement(Resource):
    """Cosines between participants' updates, for every pair: the first with the second, the third …, the second with
    the third …
    """

    participants: list[ParticipantName] = Field(description="Names, in order; at most 60")
    display_names: dict[str, Line] = Field(description="Display names of real participants; the others are simulated")
    cosines: list[float | None] = Field(
        description="Estimates, which can exceed the range −1 to 1; null if one of the two updates is zero"
    )
    errors: list[float | None] = Field(
        description="Standard error of each estimate, caused by the projection; 0 for exact values"
    )


class ReconstructionError(Resource):
    """‖Δ~ − Δ‖ / ‖Δ‖ of the participants' mean update Δ and its reconstruction Δ~."""

    expected: float
    low: float = Field(description="Two standard errors below, or the value for participants that agree")
    high: float = Field(description="Two standard errors above")


class UpdateNoise(Resource):
    """The noise that random directions add to the step, compared with the weights."""

    percent: float = Field(description="In percent of the size of the weights, over the whole model")
    advised_percent: float = Field(description="Highest recommended value")
    most_percent: float = Field(
        description="Limit above which a round is refused, unless `algorithm.refuse_noisy_rounds` is off"
    )
    advice: list[Line] = Field(
        description=("Alternative changes that lower the noise to the recommended value; empty if it is lower already")
    )


class RoundUpdate(Resource):
    """One committed round's update. Lists have one entry for each block, in the model's order; values that the
    algorithm does not have are null. In models with more than 1,024 blocks, neighbours are combined.
    """

    round: int
    blocks: list[str] = Field(description="Names of the projection's blocks, else of the tensors")
    sizes: list[int] = Field(description="Number of weights of each block")
    step: list[float] = Field(description=f"Size of the round's step: {_RMS}")
    weights: list[float] = Field(description=f"The weights before the round: {_RMS}")
    noise: list[float] | None = Field(description=f"Expected noise of the projection in the step: {_RMS}")
    update: list[float] | None = Field(
        description=f"One participant's update, estimated from its coordinates: {_RMS}, and over the participants"
    )
    K: list[float] | None = Field(description="Coordinates of each block, mean over the participants")
    error: ReconstructionError | None
    projection_noise: UpdateNoise | None
    agreement: UpdateAgreement | None = Field(
        description="Null if updates cannot be compared: fewer than two, one-bit coordinates of fewer "
        "than eight weights each, or an algorithm with uploads that do not reveal the "
        "update"
    )
