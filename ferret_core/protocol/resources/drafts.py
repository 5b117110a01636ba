"""A specification that is being written: what a change makes of it, whether it is valid, and what it would cost."""

from __future__ import annotations

from pydantic import Field

from ferret_core.protocol.resources.base import Failure, Json, Resource


class PatchedSpec(Resource):
    """The specification after a change."""

    spec: Json
    dropped: Json = Field(description="By dotted names, the values that the change removed without naming them")


class NoisiestBlock(Resource):
    """The block with the largest noise."""

    block: str
    percent: float


class EstimatedNoise(Resource):
    """The noise that random directions add to every weight in round 1, in percent of the size of the weights."""

    percent: float
    largest: NoisiestBlock


class Estimate(Resource):
    """What the experiment would send and need. Sizes are exact; noise, memory and time are expected values."""

    d: int = Field(description="Weights that are trained")
    K: int | None = Field(description="Coordinates of a contribution, if the algorithm sends coordinates")
    participants: int = Field(description="In each round")
    rounds: int
    bytes_up: int | None = Field(
        description="From each participant in a round; null if it is known only once the model is loaded"
    )
    bytes_down: int | None = Field(description="To each participant in a round")
    total_bytes: int | None = Field(description="Of all participants in all rounds, up and down")
    noise: EstimatedNoise | None = Field(description="Null if nothing is projected")
    memory_bytes: int | None = Field(description="Peak memory of a participant")
    local_seconds: float | None = Field(
        description="Training time of a participant in a round, if it is as fast as the server; null if epochs are "
        "trained and `examples` is not given"
    )
    aggregate_seconds: float = Field(description="Work of the server in a round")
    advice: list[str]


class DraftValidation(Resource):
    """What would happen if the specification were submitted now."""

    filled: Json = Field(description="The specification with every default; a section with a wrong value is left out")
    problem: Failure | None = Field(description="Why it would be refused; null: it would be accepted")
    plan: Estimate | None
    unplanned: Failure | None = Field(description="Why a specification without a problem has no estimate")
    change: Json | None = Field(
        description="With `original`, and without a problem: the JSON Merge Patch that clones it into this"
    )


class Preset(Resource):
    """A named start for a specification."""

    name: str
    description: str
    change: Json = Field(description="The values that it sets")


class PresetList(Resource):
    """All presets."""

    items: list[Preset]
