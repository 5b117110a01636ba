"""Questions to a model."""

from __future__ import annotations

from pydantic import Field, field_validator

from ferret_api.schemas import MAX_INTEGER, Command
from ferret_core.protocol.playground import MOST_CHARACTERS, MOST_TOKENS


class PlaygroundRequest(
    Command,
    json_schema_extra={
        "examples": [{"question": "Count the words.", "input": "bell school kite", "max_new_tokens": 16}]
    },
):
    """A question to the model of a round, formatted like the training data."""

    question: str = Field(min_length=1, max_length=MOST_CHARACTERS, description="The instruction")
    input: str = Field(
        default="", max_length=MOST_CHARACTERS, description="Input that the instruction refers to, if it is separate"
    )
    round: int | None = Field(
        default=None,
        ge=0,
        le=MAX_INTEGER,
        description="Round of the checkpoint that answers; 0 is the base model; default: the last with a checkpoint",
    )
    compare: bool = Field(default=True, description="true: the base model also answers, after the tuned one")
    temperature: float = Field(
        default=0.0, ge=0, le=2, allow_inf_nan=False, description="0: the most probable answer; higher: more varied"
    )
    max_new_tokens: int = Field(
        default=128,
        ge=1,
        le=MOST_TOKENS,
        description="Maximum answer length in tokens; at most `FERRET_PLAYGROUND_TOKENS` of the service",
    )
    seed: int = Field(
        default=0, ge=0, le=MAX_INTEGER, description=("Seed that repeats an answer at a temperature above 0")
    )

    @field_validator("question")
    @classmethod
    def _not_blank(cls, question: str) -> str:
        if not question.strip():
            raise ValueError("is blank: write a question")
        return question


class ExampleRequest(Command, json_schema_extra={"examples": [{"seed": 7}]}):
    """Choice of a held-out example."""

    seed: int = Field(default=0, ge=0, le=MAX_INTEGER, description="Index of the example, modulo their number")
