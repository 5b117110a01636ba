"""What is asked for of a specification that is being written."""

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
