"""What is inside a round's update, as a server tells it."""

from __future__ import annotations

from pydantic import Field

from ferret_core.protocol.ids import ParticipantName
from ferret_core.protocol.sanitize import Line
from ferret_sdk.service.schemas import Document


class UpdateAgreement(Document):
    """Cosines between participants' updates: of the first with the second, the third …, of the second with the third …

    ``errors`` are their standard errors; both are None for a pair one of which did not move.
    """

    participants: list[ParticipantName]
    display_names: dict[str, Line] = Field(default_factory=dict)
    cosines: list[float | None]
    errors: list[float | None]


class ReconstructionError(Document):
    """‖Δ~ − Δ‖ / ‖Δ‖ of the participants' mean update and what was rebuilt of it, and between what it lies."""

    expected: float
    low: float
    high: float


class UpdateNoise(Document):
    """The projection's noise in percent of the weights, what is advised at most, and changes that lead there."""

    percent: float
    advised_percent: float
    most_percent: float
    advice: list[Line] = Field(default_factory=list)


class RoundUpdate(Document):
    """Lists have one entry for each block, in the model's order: root mean squares over its weights, and K_l. What the
    algorithm does not have is None."""

    round: int
    blocks: list[str]
    sizes: list[int]
    step: list[float]
    weights: list[float]
    noise: list[float] | None = None
    update: list[float] | None = None
    K: list[float] | None = None
    error: ReconstructionError | None = None
    weight_noise: UpdateNoise | None = None
    agreement: UpdateAgreement | None = None
