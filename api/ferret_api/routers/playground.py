"""Endpoints of the playground: questions to the models of an experiment's checkpoints. Nothing is stored."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import Field, field_validator

from ferret_api import downloads
from ferret_api.access import Asker, AskingResearcher
from ferret_api.context import WholeContext
from ferret_api.events.access_check import StreamReader
from ferret_api.events.streams import NOT_HELD_BACK, EventStream, Place
from ferret_api.http.errors import problems
from ferret_api.question_channel import Conversation, conversation
from ferret_api.schemas import MAX_INTEGER, PREFIX, Command, ExperimentId
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.playground import (
    MOST_CHARACTERS,
    MOST_TOKENS,
    HeldOutExample,
    ModelSide,
    PlaygroundEvent,
    PlaygroundQuestion,
)
from ferret_db.database import Database
from ferret_db.repositories import artifacts, experiments


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


router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/playground", tags=["playground"])

_REFUSALS = ("experiment.not_found", "round.too_small", "playground.busy", "playground.unavailable", "broker.missing")


def _question(
    experiment_id: ExperimentId, ask: PlaygroundRequest, caller: Asker, context: WholeContext
) -> PlaygroundQuestion:
    most = context.settings.playground_tokens
    if ask.max_new_tokens > most:
        message = f"at most {most}, which FERRET_PLAYGROUND_TOKENS allows"
        raise FerretError.of_field("request.invalid", "max_new_tokens", ask.max_new_tokens, message)
    rounds = _rounds(caller.database, experiment_id, ask, context.settings.min_participants)
    context.limits.admit_question(caller.id)
    shared = ask.model_dump(include={"question", "input", "temperature", "max_new_tokens", "seed"})
    return PlaygroundQuestion(experiment=experiment_id, rounds=rounds, **shared)


def _rounds(database: Database, experiment_id: str, ask: PlaygroundRequest, least: int) -> dict[ModelSide, int]:
    """Returns the rounds to question, by default the newest. Raises ``round.too_small`` unless it is released."""
    with database.read() as s:
        experiment = experiments.get(s, experiment_id)
        written = artifacts.rounds_of(s, experiment_id)
        if not written:
            raise FerretError("artifact.not_found", f"{experiment_id} has no checkpoint yet: wait for its first round")
        number = written[-1] if ask.round is None else ask.round
        if number not in written:
            reason = f"has no checkpoint: choose from {', '.join(map(str, written[-20:]))}"
            raise FerretError.of_field("artifact.not_found", "round", number, reason)
        downloads.require_large(s, experiment, number, least)
    if number == 0:
        return {"base": 0}
    return {"tuned": number, "base": 0} if ask.compare and 0 in written else {"tuned": number}


async def _asked(
    question: Annotated[PlaygroundQuestion, Depends(_question)], caller: Asker, context: WholeContext, follower: Place
) -> AsyncGenerator[Conversation]:
    async with conversation(context, question, caller.id) as begun:
        yield begun


@router.post(
    "",
    operation_id="ask_model",
    response_class=EventStream,
    responses={
        200: {
            "model": PlaygroundEvent,
            "description": "Events: `waiting`, `loading`, `text`, `done`, then `end` or `problem`",
        },
        **problems(*_REFUSALS, "artifact.not_found", "stream.refused"),
    },
)
async def ask_model(
    begun: Annotated[Conversation, Depends(_asked)], follower: Place, context: WholeContext, request: Request
) -> EventStream:
    """Streams the answer of a round's model, then the base model's, token by token as server-sent events.

    Closing the connection cancels the work. Question and answers are not stored. Requires the role viewer.
    """
    events = _answer(begun, follower, context.stopping, request.state.request_id)
    return EventStream(events, headers=NOT_HELD_BACK)


def _example(
    experiment_id: ExperimentId, wanted: ExampleRequest, caller: AskingResearcher, context: WholeContext
) -> PlaygroundQuestion:
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
    context.limits.admit_question(caller.id)
    return PlaygroundQuestion(kind="example", experiment=experiment_id, seed=wanted.seed)


@router.post(
    "/example",
    operation_id="draw_example",
    responses=problems(*_REFUSALS, "playground.no_example", "playground.interrupted", "dataset.invalid"),
)
async def draw_example(
    question: Annotated[PlaygroundQuestion, Depends(_example)], caller: AskingResearcher, context: WholeContext
) -> HeldOutExample:
    """Returns one of the service's held-out examples, as a question for the model. Requires the role researcher.

    The audit log records each example that is shown."""
    async with conversation(context, question, caller.id) as begun:
        async for word in begun.words():
            if word is not None and word.kind == "example":
                drawn = HeldOutExample.model_validate(word.data)
                await run_in_threadpool(downloads.record_example, context, caller.id, question.experiment, drawn.number)
                return drawn
    raise FerretError("playground.interrupted", "the worker sent no example: try again")


async def _answer(begun: Conversation, follower: StreamReader, stopping: Any, request_id: str) -> AsyncGenerator[bytes]:
    """A problem is the last event, since the response's status has already begun."""
    taken = False
    try:
        async for word in begun.words():
            if follower.refused:
                return
            if stopping.is_set():
                raise FerretError("playground.interrupted", "the service is stopping: try again in a moment")
            if word is not None:
                taken = True
                yield _event(word.kind, word.data)
            else:
                yield KEEPALIVE_COMMENT if taken else _event("waiting", {"seconds": begun.seconds})
        yield _event("end", {})
    except FerretError as error:
        yield _event("problem", {**error.to_json(), "request_id": request_id})


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return format_sse_event(data_str=json.dumps(data, allow_nan=False), event=kind)
