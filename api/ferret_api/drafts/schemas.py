"""Request bodies for draft specifications."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from ferret_api.http.openapi_example import SPECIFICATION
from ferret_api.schemas import Command
from ferret_core.models.architecture import LLAMAS
from ferret_core.protocol.limits import MAX_EXAMPLES, MAX_WIDTH
from ferret_core.protocol.resources.base import Json

LONGEST_TOML = 100_000
Shape = Annotated[str, Field(max_length=64, json_schema_extra={"enum": list(LLAMAS)})]
Document = Annotated[Json, Field(description="A specification; it may be incomplete or invalid")]


class Change(
    Command,
    json_schema_extra={
        "examples": [{"preset": "fast", "spec": SPECIFICATION, "change": {"algorithm": {"name": "fedavg"}}}]
    },
):
    """Request to change a specification, given as JSON, as TOML or by an experiment."""

    spec: Document | None = None
    original: str | None = Field(
        default=None, max_length=64, description="Id of an experiment that provides the specification"
    )
    toml: str | None = Field(default=None, max_length=LONGEST_TOML, description="The specification as TOML")
    preset: str | None = Field(default=None, max_length=64, description="Name of a preset, applied first")
    change: Json = Field(
        default={},
        description="JSON Merge Patch (RFC 7396). Another algorithm, dataset or partition drops the "
        "previous options, except the values that `algorithm.local` has in common; an "
        "option replaces options that it excludes",
    )

    @model_validator(mode="after")
    def _one_of_three(self) -> Self:
        if [self.spec, self.toml, self.original].count(None) != 2:
            raise ValueError("give one of spec, toml and original")
        return self


class Draft(Command, json_schema_extra={"examples": [{"spec": SPECIFICATION, "shape": "llama-1b", "examples": 400}]}):
    """Request to plan a specification, with the plan's assumptions."""

    spec: Document
    original: str | None = Field(default=None, max_length=64, description="Id of the experiment that it modifies")
    shape: Shape | None = Field(
        default=None, description="Plan for a model of these sizes, in place of the one in the specification"
    )
    examples: int | None = Field(
        default=None, ge=1, le=MAX_EXAMPLES, description="Examples per participant, used to convert epochs to steps"
    )
    tokens: int = Field(default=256, ge=1, le=MAX_WIDTH, description="Tokens per sequence, prompt and answer together")
