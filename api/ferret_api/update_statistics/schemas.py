"""What is inside a round's update, as the API shows it."""

from __future__ import annotations

from pydantic import Field

from ferret_api.schemas import Resource

_RMS = "root mean square over the block's weights"


class UpdateAgreement(Resource):
    """Cosines between participants' updates, for every pair: the first with the second, the third …, the second with
    the third …"""

    participants: list[str] = Field(description="Names, in order; 60 at most")
    display_names: dict[str, str] = Field(description="What people call the real ones; all others are simulated")
    cosines: list[float | None] = Field(
        description="Estimates, which may lie beyond −1 and 1; null where one of the two did not move"
    )
    errors: list[float | None] = Field(
        description="Standard error of each, as the projection puts it on the estimate; 0 where nothing is estimated"
    )


class ReconstructionError(Resource):
    """‖Δ~ − Δ‖ / ‖Δ‖ of the participants' mean update Δ and what was rebuilt of it, Δ~."""

    expected: float
    low: float = Field(description="Two standard errors below, or what agreeing participants would come to")
    high: float


class UpdateNoise(Resource):
    """The noise that random directions put into the step, held against the weights."""

    percent: float = Field(description="Of the weights' own size, over the whole model")
    advised_percent: float = Field(description="What is advised at most")
    most_percent: float = Field(description="Beyond it a round is refused, unless `algorithm.guard` is off")
    advice: list[str] = Field(description="Changes each of which brings it to what is advised; empty where it is below")


class RoundUpdate(Resource):
    """One committed round's update. Lists have one entry for each block, in the model's order; what the algorithm does
    not have is null. Of more than 1,024 blocks, neighbours are put together."""

    round: int
    blocks: list[str] = Field(description="Names: the blocks that updates are projected in, else the tensors")
    sizes: list[int] = Field(description="Weights of each")
    step: list[float] = Field(description=f"What the round moved the weights by: {_RMS}")
    weights: list[float] = Field(description=f"The weights before the round: {_RMS}")
    noise: list[float] | None = Field(description=f"Expected noise of the projection in the step: {_RMS}")
    update: list[float] | None = Field(
        description=f"One participant's own update, as its coordinates tell it: {_RMS}, and over the participants"
    )
    K: list[float] | None = Field(description="Coordinates of each, in the mean over the participants")
    error: ReconstructionError | None
    weight_noise: UpdateNoise | None
    agreement: UpdateAgreement | None = Field(
        description="Null where updates cannot be compared: fewer than two, one-bit coordinates of "
        "fewer than eight weights each, or an algorithm whose uploads do not tell the update"
    )
