"""Questions to a model, and what its worker says."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from ferret_api.schemas import MAX_INTEGER, Command, Resource
from ferret_core.protocol.errors import FieldError
from ferret_core.protocol.playground import MOST_CHARACTERS, MOST_TOKENS, Side


class Ask(
    Command,
    json_schema_extra={
        "examples": [{"question": "Count the words.", "input": "bell school kite", "max_new_tokens": 16}]
    },
):
    """A question to the model after a round, in the words of training."""

    question: str = Field(min_length=1, max_length=MOST_CHARACTERS, description="What to ask: the instruction")
    input: str = Field(
        default="", max_length=MOST_CHARACTERS, description="What the question is about, where that stands apart"
    )
    round: int | None = Field(
        default=None,
        ge=0,
        le=MAX_INTEGER,
        description="Round whose checkpoint answers; 0 is the base model. By default the last with a checkpoint",
    )
    compare: bool = Field(default=True, description="Whether the base model answers too, after the tuned one")
    temperature: float = Field(
        default=0.0, ge=0, le=2, allow_inf_nan=False, description="0: the most probable answer; higher: more varied"
    )
    max_new_tokens: int = Field(
        default=128,
        ge=1,
        le=MOST_TOKENS,
        description="Longest answer, in tokens; at most `FERRET_PLAYGROUND_TOKENS` of the service",
    )
    seed: int = Field(default=0, ge=0, le=MAX_INTEGER, description="Draws the same answer again at a temperature")

    @field_validator("question")
    @classmethod
    def _not_blank(cls, question: str) -> str:
        if not question.strip():
            raise ValueError("is blank: write a question")
        return question


class Said(Resource):
    """The data of one event of an answer. Which members there are, its type says.

    `waiting`: no worker has taken the question for `seconds`. `loading`: the model of `side` is read. `text`: more of
    its answer. `done`: the answer is whole. `problem`: there is no more, since. `end`: there is no more.
    """

    side: Side | None = None
    round: int | None = Field(default=None, description="With `loading`: the round whose model is read")
    text: str | None = Field(default=None, description="With `text`: what follows what was said before")
    tokens: int | None = Field(default=None, description="With `done`: the answer's length")
    seconds: float | None = Field(default=None, description="With `done`: what the answer took; with `waiting`: so far")
    ended: Literal["model", "length", "context"] | None = Field(
        default=None,
        description="With `done`: who ended the answer, the model, `max_new_tokens`, or the end of the context",
    )
    code: str | None = Field(default=None, description="With `problem`, as the following")
    title: str | None = None
    status: int | None = None
    detail: str | None = None
    errors: list[FieldError] | None = None
    request_id: str | None = None


class ExampleRequest(Command, json_schema_extra={"examples": [{"seed": 7}]}):
    """Which held-out example."""

    seed: int = Field(default=0, ge=0, le=MAX_INTEGER, description="Divided by their number, the rest is its number")


class HeldOutExample(Resource):
    """A held-out example of the experiment's dataset, as evaluation asks it."""

    number: int
    question: str
    input: str
    references: list[str] = Field(description="Answers that count as right, the dataset's own first")
