"""Statistics of a round's update, per block."""

from __future__ import annotations

from pydantic import Field

from ferret_core.protocol.ids import ParticipantName
from ferret_core.protocol.resources.base import Resource
from ferret_core.protocol.sanitize import Line

_RMS = "root mean square over the block's weights"


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
    step: list[float] = Field(description=f"How far the round moved the weights: {_RMS}")
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
