"""Answers of an experiment's models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ferret_core.protocol.errors import FieldError
from ferret_core.protocol.playground import ModelSide
from ferret_core.protocol.resources.base import Resource


class PlaygroundEvent(Resource):
    """The data of one event of an answer. The event's type determines its fields.

    `waiting`: no worker has taken the question for `seconds`. `loading`: the model of `side` is being read. `text`:
    more of its answer. `done`: its answer is complete. `problem`: reason for ending early. `end`: nothing follows.
    """

    side: ModelSide | None = None
    round: int | None = Field(default=None, description="With `loading`: the round whose model is being read")
    text: str | None = Field(default=None, description="With `text`: the continuation of the answer")
    tokens: int | None = Field(default=None, description="With `done`: length of the answer")
    seconds: float | None = Field(
        default=None, description="With `done`: time that the answer took; with `waiting`: time so far"
    )
    ended: Literal["model", "length", "context"] | None = Field(
        default=None,
        description=(
            "With `done`: reason for the end of the answer: the model, `max_new_tokens`, or the end of the context"
        ),
    )
    code: str | None = Field(default=None, description="With `problem`, as all of the following")
    title: str | None = None
    status: int | None = None
    detail: str | None = None
    errors: list[FieldError] | None = None
    request_id: str | None = None


class HeldOutExample(Resource):
    """A held-out example of the experiment's dataset, formatted as in its evaluation."""

    number: int
    question: str
    input: str
    references: list[str] = Field(description="Correct answers, the dataset's own first")
