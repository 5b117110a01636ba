"""A question to a model of an experiment, and what is said while a worker answers it.

Both travel by Redis' publish and subscribe alone, which writes nothing to a disk: the task's message carries an id, the
worker that takes it says ``ready`` to whoever waits under that id, and is sent the :class:`Question`. Whoever publishes
is told how many listen. So a worker learns from every word whether its asker is still there, and stops where it is not.

Words are numbered from 0 without gaps: one that got lost is noticed by the next.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

from pydantic import Field

from ferret_core.protocol.spec import Strict

MOST_CHARACTERS = 16_000
"""Of a question, and of its input; a context may hold fewer."""
MOST_TOKENS = 2048
"""Of an answer, unless the service's limit is lower."""
ALIVE_SECONDS = 1.0
"""A worker at a question says a word at least this often."""

Side = Literal["tuned", "base"]
Kind = Literal["ready", "alive", "loading", "text", "done", "example", "problem", "end"]


class Question(Strict):
    """What a worker is asked. ``kind`` ``example``: a held-out example, the ``seed`` says which, in place of answers.

    ``rounds`` are those whose models answer, by side, in this order.
    """

    kind: Literal["answer", "example"] = "answer"
    experiment: str
    rounds: dict[Side, int] = Field(default_factory=dict[Side, int])
    question: str = Field(default="", max_length=MOST_CHARACTERS)
    input: str = Field(default="", max_length=MOST_CHARACTERS)
    temperature: float = Field(default=0.0, ge=0, le=2, allow_inf_nan=False)
    max_new_tokens: int = Field(default=256, ge=1, le=MOST_TOKENS)
    seed: int = Field(default=0, ge=0, lt=2**31)


class Word(NamedTuple):
    """One message of a worker to its asker."""

    number: int
    kind: Kind
    data: dict[str, Any]

    def encode(self) -> bytes:
        return json.dumps(self, allow_nan=False).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Word:
        return cls(*json.loads(raw))


def to_asker(question_id: str) -> str:
    """The channel on which the worker speaks."""
    return f"ferret:playground:{question_id}:asker"


def of_user(instance: str, user_id: str) -> str:
    """The channel to which each open question of the user at the service ``instance`` subscribes, so that Redis counts
    them over all processes. Nothing is sent on it."""
    return f"ferret:playground:{instance}:{user_id}"


def to_worker(question_id: str) -> str:
    """The channel on which it is sent the question."""
    return f"ferret:playground:{question_id}:worker"
