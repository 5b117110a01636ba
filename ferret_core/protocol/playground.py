"""Questions to a model of an experiment, the messages of the worker that answers, and the REST API's events of them.

Questions and messages travel by Redis publish/subscribe only, which writes nothing to disk. The task's message carries
an id. The worker that takes the task publishes ``ready`` under that id and receives the :class:`PlaygroundQuestion`.
Publishing returns the number of subscribers, so a worker learns with every message if its requester is still connected,
and stops if not.

Messages are numbered from 0 without gaps: a lost one shows at the next.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

from pydantic import Field

from ferret_core.protocol.errors import FieldError
from ferret_core.protocol.resources.base import Resource
from ferret_core.protocol.spec import StrictModel

MOST_CHARACTERS = 16_000
"""Maximum length of a question, and of its input; a context may hold less."""
MOST_TOKENS = 2048
"""Maximum length of an answer, unless the service's limit is lower."""
ALIVE_SECONDS = 1.0
"""Maximum interval between the messages of a worker that answers."""

ModelSide = Literal["tuned", "base"]
Kind = Literal["ready", "alive", "loading", "text", "done", "example", "problem", "end"]


class PlaygroundQuestion(StrictModel):
    """A request to a worker.

    ``kind`` is ``answer``, or ``example`` for a held-out example chosen by ``seed``. ``rounds``: the rounds of the
    models that answer, by side, in this order.
    """

    kind: Literal["answer", "example"] = "answer"
    experiment: str
    rounds: dict[ModelSide, int] = Field(default_factory=dict[ModelSide, int])
    question: str = Field(default="", max_length=MOST_CHARACTERS)
    input: str = Field(default="", max_length=MOST_CHARACTERS)
    temperature: float = Field(default=0.0, ge=0, le=2, allow_inf_nan=False)
    max_new_tokens: int = Field(default=256, ge=1, le=MOST_TOKENS)
    seed: int = Field(default=0, ge=0, lt=2**31)


class PlaygroundMessage(NamedTuple):
    """One message of a worker to its requester."""

    number: int
    kind: Kind
    data: dict[str, Any]

    def encode(self) -> bytes:
        return json.dumps(self, allow_nan=False).encode()

    @classmethod
    def decode(cls, raw: bytes) -> PlaygroundMessage:
        return cls(*json.loads(raw))


def requester_channel(question_id: str) -> str:
    """Returns the channel on which the worker publishes."""
    return f"ferret:playground:{question_id}:asker"


def of_user(instance: str, user_id: str) -> str:
    """Returns the channel that each open question of the user at the service ``instance`` subscribes to.

    Nothing is sent on it. Redis counts its subscribers over all processes.
    """
    return f"ferret:playground:{instance}:{user_id}"


def worker_channel(question_id: str) -> str:
    """Returns the channel on which the worker receives the question."""
    return f"ferret:playground:{question_id}:worker"


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
