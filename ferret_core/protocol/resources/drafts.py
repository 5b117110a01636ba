"""Responses about a draft specification: a change's result, the validation, and the estimated cost."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from ferret_core.protocol.resources.base import Failure, Json, Resource
from ferret_core.protocol.sanitize import Line, Words


class PatchedSpec(Resource):
    """The specification after a change."""

    spec: Json
    dropped: Json = Field(description="By dotted names, the values that the change removed implicitly")


class NoisiestBlock(Resource):
    """The block with the largest noise."""

    block: str
    percent: float


class EstimatedNoise(Resource):
    """The noise that random directions add to every weight in round 1, in percent of the size of the weights."""

    percent: float
    largest: NoisiestBlock


class Estimate(Resource):
    """Estimated cost of an experiment. Sizes are exact; noise, memory and time are expected values."""

    d: int = Field(description="Number of trained weights")
    K: int | None = Field(description="Coordinates of a contribution, if the algorithm sends coordinates")
    participants: int = Field(description="Participants per round")
    rounds: int
    bytes_up: int | None = Field(
        description="From each participant in a round; null if it is known only once the model is loaded"
    )
    bytes_down: int | None = Field(description="To each participant in a round")
    total_bytes: int | None = Field(description="Sum over all participants and rounds, both directions")
    noise: EstimatedNoise | None = Field(description="Null without projection")
    memory_bytes: int | None = Field(description="Peak memory of a participant")
    local_seconds: float | None = Field(
        description="Training time of a participant in a round, at the server's speed; null if epochs "
        "are trained and `examples` is not given"
    )
    aggregate_seconds: float = Field(description="Server time per round")
    advice: list[str]


class DraftValidation(Resource):
    """Result of validating and estimating a specification."""

    filled: Json = Field(description="The specification with all defaults; a section with an invalid value is omitted")
    problem: Failure | None = Field(description=("Reason for refusing the specification; null if it is valid"))
    plan: Estimate | None
    unplanned: Failure | None = Field(description="Reason for a missing estimate of a valid specification")
    change: Json | None = Field(
        description=(
            "With `original`, and without a problem: the JSON Merge Patch that produces this "
            "specification from the original"
        )
    )


class Preset(Resource):
    """A named starting point for a specification."""

    name: str
    description: str
    change: Json = Field(description="Values that it sets")


class PresetList(Resource):
    """All presets."""

    items: list[Preset]


class CatalogEntry(Resource):
    """An algorithm, dataset or model that an experiment can choose by name."""

    name: Line
    title: Line
    description: Words
    options: Json = Field(
        validation_alias=AliasChoices("schema", "options"),
        serialization_alias="schema",
        description="JSON Schema of the entry's options",
    )


class CatalogEntryList(Resource):
    """Entries by name. The presets of an algorithm follow it and can be chosen like algorithms."""

    items: list[CatalogEntry]
