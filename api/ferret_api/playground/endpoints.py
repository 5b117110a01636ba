"""Endpoints of the playground: questions to the models of an experiment's checkpoints. Nothing is stored."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool

from ferret_api import downloads
from ferret_api.access import Asker, AskingResearcher
from ferret_api.context import WholeContext
from ferret_api.events.sse import NOT_HELD_BACK, EventStream
from ferret_api.events.stream_slot import Place
from ferret_api.http.problems import problems
from ferret_api.playground import answer_stream
from ferret_api.playground.question_channel import Conversation, conversation
from ferret_api.playground.schemas import ExampleRequest, PlaygroundRequest
from ferret_api.schemas import PREFIX, ExperimentId
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.playground import HeldOutExample, ModelSide, PlaygroundEvent, PlaygroundQuestion
from ferret_db.database import Database
from ferret_db.repositories import artifacts, experiments

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/playground", tags=["playground"])

_REFUSALS = (
    "experiment.not_found",
    "playground.busy",
    "playground.unavailable",
    "broker.missing",
)


def _question(
    experiment_id: ExperimentId, ask: PlaygroundRequest, caller: Asker, context: WholeContext
) -> PlaygroundQuestion:
    most = context.settings.playground_tokens
    if ask.max_new_tokens > most:
        message = f"at most {most}, which FERRET_PLAYGROUND_TOKENS allows"
        raise FerretError.of_field("request.invalid", "max_new_tokens", ask.max_new_tokens, message)
    rounds = _rounds(caller.database, experiment_id, ask)
    context.limits.admit_question(caller.id)
    shared = ask.model_dump(include={"question", "input", "temperature", "max_new_tokens", "seed"})
    return PlaygroundQuestion(experiment=experiment_id, rounds=rounds, **shared)


def _rounds(database: Database, experiment_id: str, ask: PlaygroundRequest) -> dict[ModelSide, int]:
    with database.read() as s:
        experiments.get(s, experiment_id)
        written = artifacts.rounds_of(s, experiment_id)
    if not written:
        raise FerretError("artifact.not_found", f"{experiment_id} has no checkpoint yet: wait for its first round")
    number = written[-1] if ask.round is None else ask.round
    if number not in written:
        reason = f"has no checkpoint: choose from {', '.join(map(str, written[-20:]))}"
        raise FerretError.of_field("artifact.not_found", "round", number, reason)
    if number == 0:
        return {"base": 0}
    return {"tuned": number, "base": 0} if ask.compare and 0 in written else {"tuned": number}


async def _asked(
    question: Annotated[PlaygroundQuestion, Depends(_question)], caller: Asker, context: WholeContext, follower: Place
) -> AsyncGenerator[Conversation]:
    """Yields the conversation. Sends the question before the stream begins, so that it can raise problems."""
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
    events = answer_stream.follow(begun, follower, context.stopping, request.state.request_id)
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
