"""The statistics of a round's update, as sent by a server."""

from __future__ import annotations

from pydantic import Field

from ferret_core.protocol.ids import ParticipantName
from ferret_core.protocol.sanitize import Line
from ferret_sdk.service.schemas import Document


class UpdateAgreement(Document):
    """Cosines between participants' updates: of the first with the second, the third …, of the second with the third …

    ``errors`` are their standard errors. Both are None for a pair with an unmoved participant.
    """

    participants: list[ParticipantName]
    display_names: dict[str, Line] = Field(default_factory=dict)
    cosines: list[float | None]
    errors: list[float | None]


class ReconstructionError(Document):
    """Relative error ‖Δ~ − Δ‖ / ‖Δ‖ of the reconstruction of the participants' mean update, and its bounds."""

    expected: float
    low: float
    high: float


class UpdateNoise(Document):
    """The projection's noise in percent of the weights, the recommended maximum, and changes that achieve it."""

    percent: float
    advised_percent: float
    most_percent: float
    advice: list[Line] = Field(default_factory=list)


class RoundUpdate(Document):
    """Statistics of a round's update.

    Lists have one entry per block, in the model's order: root mean squares over its weights, and K_l. Values that do
    not exist for the algorithm are None.
    """

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
