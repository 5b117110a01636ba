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
    accumulated_percent: float = Field(
        description="After all rounds: the noises of the rounds are independent, so their squares add up"
    )
    largest: NoisiestBlock


class PlannedPrivacy(Resource):
    """Protection of records by noise, after all rounds."""

    unit: str
    epsilon: float | None = Field(description="ε; null where dp-accounting is not installed")
    delta: float
    noise_multiplier: float = Field(description="z, in units of the sensitivity")
    useful: float = Field(description="K*: the number of coordinates at which noise and projection cost the same")
    relative_noise: float = Field(description="Noise of the update relative to that of dense updates with the same ε")


class PlannedSums(Resource):
    """Cost of secure sums, compared with no sum: of a projection, with separate seeds in the default bytes."""

    bits: int = Field(description="Bits of a number")
    key_bytes: int = Field(description="Bytes of keys and shares from each participant in a round")
    members: int = Field(description="Participants in the largest group")
    survivors: int = Field(description="Participants of that group that must stay until its sum is opened")
    plain_bytes: int = Field(description="Bytes from each participant in a round without a sum")
    least_noise: float | None = Field(
        description="Energy of the noise relative to that without a sum, if updates are at right angles; null for "
        "whole updates, and if noise protects records"
    )
    most_noise: float | None = Field(description="The same if all updates are equal")


class Estimate(Resource):
    """Estimated cost of an experiment. Sizes are exact; noise, memory and time are expected values."""

    d: int = Field(description="Number of trained weights")
    K: int | None = Field(description="Coordinates of a contribution, if the algorithm sends coordinates")
    sent: int | None = Field(description="Coordinates that are sent: the largest of K, or all")
    participants: int = Field(description="Participants per round")
    rounds: int
    bytes_up: int | None = Field(
        description="From each participant in a round; null if it is known only once the model is loaded"
    )
    bytes_down: int | None = Field(description="To each participant in a round")
    total_bytes: int | None = Field(description="Sum over all participants and rounds, both directions")
    noise: EstimatedNoise | None = Field(description="Null without projection")
    memory_bytes: int | None = Field(description="Peak memory of a process that trains")
    least_memory_bytes: int | None = Field(
        description="Peak memory of a process that trains with the options for a machine with little memory"
    )
    evaluate_memory_bytes: int | None = Field(description="Peak memory of a process that evaluates")
    aggregate_memory_bytes: int | None = Field(description="Peak memory of a process that aggregates")
    cut_share: float | None = Field(description="Share of examples longer than the limit; null without data")
    local_seconds: float | None = Field(
        description="Training time of a participant in a round, at the server's speed; null if epochs "
        "are trained and `examples` is not given"
    )
    projection_seconds: float | None = Field(
        description="Time of a participant's projections in a round: one after its training, or with `pure_bfloat16` "
        "one in each step; null without projection, or if `local_seconds` is"
    )
    evaluate_seconds: float = Field(description="Time of one evaluation, with answers of the greatest length")
    aggregate_seconds: float = Field(description="Server time per round")
    checkpoints: int = Field(description="Number of models kept at the end, the base model included")
    disk_bytes: int | None = Field(
        description="Server storage at the end: the kept models, all updates and all contributions; null if it is "
        "known only once the model is loaded"
    )
    sums: PlannedSums | None = Field(description="Null without secure sums")
    privacy: PlannedPrivacy | None = Field(description="Null unless the experiment's own noise protects records")
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
    quickstart: Json | None = Field(
        description="A small experiment that this service can run as it is; null if it may not read the bundled model"
    )


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
