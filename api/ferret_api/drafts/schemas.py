"""A specification that is being written, and what there is to say of it."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from ferret_api.http.openapi_example import SPECIFICATION
from ferret_api.schemas import Command, Failure, Json, Resource
from ferret_core.models.architecture import LLAMAS
from ferret_core.protocol.limits import MAX_EXAMPLES, MAX_WIDTH

LONGEST_TOML = 100_000
Shape = Annotated[str, Field(max_length=64, json_schema_extra={"enum": list(LLAMAS)})]
Document = Annotated[Json, Field(description="A specification, which need be neither complete nor right")]


class Change(
    Command,
    json_schema_extra={
        "examples": [{"preset": "fast", "spec": SPECIFICATION, "change": {"algorithm": {"name": "fedavg"}}}]
    },
):
    """A specification, as it is, as TOML or an experiment's, and what is to be different."""

    spec: Document | None = None
    original: str | None = Field(
        default=None, max_length=64, description="Id of an experiment: what its specification has to say, instead"
    )
    toml: str | None = Field(default=None, max_length=LONGEST_TOML, description="The same as text, instead")
    preset: str | None = Field(default=None, max_length=64, description="Name of a preset, chosen first")
    change: Json = Field(
        default={},
        description="JSON Merge Patch (RFC 7396). Another algorithm, dataset or partition drops the options of the one "
        "before, except what `algorithm.local` has in common; an option replaces those it excludes",
    )

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if [self.spec, self.toml, self.original].count(None) != 2:
            raise ValueError("give one of spec, toml and original")
        return self


class Revised(Resource):
    """The specification after a change."""

    spec: Json
    dropped: Json = Field(description="By dotted names, the values that had to go without being mentioned")


class Draft(Command, json_schema_extra={"examples": [{"spec": SPECIFICATION, "shape": "llama-1b", "examples": 400}]}):
    """A specification to plan for, and what the plan assumes."""

    spec: Document
    original: str | None = Field(
        default=None, max_length=64, description="Id of the experiment that it is to be a changed copy of"
    )
    shape: Shape | None = Field(
        default=None, description="Plan for a model of these sizes, in place of the one in the specification"
    )
    examples: int | None = Field(
        default=None, ge=1, le=MAX_EXAMPLES, description="Examples of a participant, of which epochs are counted"
    )
    tokens: int = Field(default=256, ge=1, le=MAX_WIDTH, description="Tokens of a sequence, prompt and answer together")


class LargestNoise(Resource):
    """The block that the noise is largest in."""

    block: str
    percent: float


class PlannedNoise(Resource):
    """What random directions add to every weight in round 1, in percent of the weights' own size."""

    percent: float
    largest: LargestNoise


class Plan(Resource):
    """What the experiment will send and need. Sizes are exact; noise, memory and time are expected."""

    d: int = Field(description="Weights that are tuned")
    K: int | None = Field(description="Coordinates of a contribution, if the algorithm sends coordinates")
    participants: int = Field(description="Of a round")
    rounds: int
    bytes_up: int | None = Field(
        description="From each participant in a round; null where it is known only once the model is loaded"
    )
    bytes_down: int | None = Field(description="To each participant in a round")
    total_bytes: int | None = Field(description="Of all participants in all rounds, up and down")
    noise: PlannedNoise | None = Field(description="Null where nothing is projected")
    memory_bytes: int | None = Field(description="A participant's peak")
    local_seconds: float | None = Field(
        description="A participant's training in a round, if it is as fast as the server; null without its `examples` "
        "where epochs are trained"
    )
    aggregate_seconds: float = Field(description="The server's work in a round")
    advice: list[str]


class Planned(Resource):
    """What would come of submitting the specification now."""

    filled: Json = Field(description="With every default filled in; a section with a wrong value is left out")
    problem: Failure | None = Field(description="What submitting it would be answered with; null: it would be accepted")
    plan: Plan | None
    unplanned: Failure | None = Field(description="Why there is no plan of a specification without a problem")
    change: Json | None = Field(
        description="With `original`, and without a problem: the JSON Merge Patch that clones it into this"
    )


class Preset(Resource):
    """A named beginning of a specification."""

    name: str
    description: str
    change: Json = Field(description="The values that it sets")


class PresetList(Resource):
    """All presets."""

    items: list[Preset]
