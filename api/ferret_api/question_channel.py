"""Channel for one question: it goes to a worker through the broker, and the answer returns through Redis pub/sub.

Closing a conversation cancels it: with its next message, the worker finds that nobody listens.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import redis
from fastapi.concurrency import run_in_threadpool
from kombu.exceptions import OperationalError
from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from ferret_api.blobs import repairing
from ferret_api.context import Context
from ferret_core.protocol.errors import FerretError, FieldError
from ferret_core.protocol.playground import (
    PlaygroundMessage,
    PlaygroundQuestion,
    of_user,
    requester_channel,
    worker_channel,
)
from ferret_core.protocol.task_names import Queue
from ferret_db.repositories import workers
from ferret_runtime.broker import address

LOOK_SECONDS = 1.0
SILENT_SECONDS = 10.0
"""Time without a message after which a worker is considered lost. It sends one every second."""
RESTART_SECONDS = 30.0
"""Time in which a supervisor must replace a worker that ends while a question waits."""
TIMEOUT_SECONDS = 5.0
WAIT_SECONDS = 120.0
"""Maximum time that a question waits for a worker."""
MOST_WAITING = 8
"""Maximum number of waiting questions. A worker answers one at a time, so the last waits some minutes."""
MOST_OF_USER = 2
"""Maximum number of open questions per user, so that nobody fills the queue."""


class Conversation:
    """A user's question, with a secret random id."""

    def __init__(
        self, context: Context, question: PlaygroundQuestion, user_id: str, client: Redis, channel: PubSub
    ) -> None:
        self._context = context
        self._question = question
        self._user = of_user(context.admin.fingerprint, user_id)
        self._client = client
        self._channel = channel
        self._id = secrets.token_hex(16)
        self._begun = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the conversation began."""
        return time.monotonic() - self._begun

    async def words(self) -> AsyncGenerator[PlaygroundMessage | None]:
        """Yields the worker's messages up to ``end``, and None about once a second without a message.

        Raises the worker's error, ``playground.unavailable`` or ``playground.busy`` if no worker takes the question,
        and ``playground.interrupted`` if the worker is lost or a message is missing.
        """
        expected, heard = 0, self.seconds
        while True:
            try:
                message: Any = await self._channel.get_message(timeout=LOOK_SECONDS)
            except redis.RedisError as error:
                raise _interrupted(f"Redis does not respond ({type(error).__name__})") from error
            if message is None:
                await self._require_hope(expected, heard)
                yield None
                continue
            word = PlaygroundMessage.decode(message["data"])
            if word.number != expected:
                raise _interrupted("a message from the worker was lost")
            expected, heard = expected + 1, self.seconds
            match word.kind:
                case "ready":
                    await self._hand_over()
                case "problem":
                    await run_in_threadpool(self._raise, word.data)
                case "alive":
                    yield None
                case "end":
                    return
                case _:
                    yield word

    async def send(self) -> None:
        """Sends the question; raises ``playground.unavailable``, ``playground.busy`` and ``broker.missing``."""
        await run_in_threadpool(self._require_worker)
        await run_in_threadpool(self._require_place)
        try:
            await self._channel.subscribe(requester_channel(self._id), self._user)
            for _ in range(2):
                await self._channel.get_message(timeout=TIMEOUT_SECONDS)  # confirmation of the subscription
            (_, count), *_ = await self._client.pubsub_numsub(self._user)
        except (redis.RedisError, OSError) as error:
            raise self._no_broker() from error
        if count > MOST_OF_USER:
            raise FerretError("playground.busy", f"{MOST_OF_USER} of your questions are open: wait for their answers")
        try:
            await run_in_threadpool(self._context.broker.send_question, self._id)
        except OperationalError as error:
            raise self._no_broker() from error

    async def _hand_over(self) -> None:
        if not await self._client.publish(worker_channel(self._id), self._question.model_dump_json()):
            raise _interrupted("the worker that took the question has ended")

    async def _require_hope(self, expected: int, heard: float) -> None:
        if expected:
            if self.seconds - heard > SILENT_SECONDS:
                raise _interrupted(f"the worker has sent nothing for {SILENT_SECONDS:.0f} s")
            return
        if self.seconds > WAIT_SECONDS:
            detail = f"no worker took the question within {WAIT_SECONDS:g} s: try again later"
            raise FerretError("playground.busy", detail)
        if self.seconds > RESTART_SECONDS:
            await run_in_threadpool(self._require_worker)

    def _require_worker(self) -> None:
        with self._context.database.read() as s:
            alive = workers.alive(s, Queue.PLAYGROUND)
        if not alive:
            reason = "no worker of the playground is alive: start one with: ferret worker playground"
            raise FerretError("playground.unavailable", reason)

    def _require_place(self) -> None:
        lengths = self._context.broker.lengths()
        if lengths is None:
            raise self._no_broker()
        if (waiting := lengths[Queue.PLAYGROUND]) >= MOST_WAITING:
            raise FerretError("playground.busy", f"{waiting} questions are already waiting: try again in a minute")

    def _no_broker(self) -> FerretError:
        return FerretError("broker.missing", "start Redis at FERRET_BROKER_URL; see /readyz")

    def _raise(self, told: dict[str, Any]) -> None:
        errors = [FieldError.model_validate(error) for error in told["errors"]]
        with repairing(self._context, self._question.experiment):
            raise FerretError(told["code"], told["detail"], errors)


@asynccontextmanager
async def conversation(context: Context, question: PlaygroundQuestion, user_id: str) -> AsyncGenerator[Conversation]:
    """Sends the user's ``question`` to a worker and yields the conversation. The worker stops when the block ends.

    Raises the errors of :meth:`Conversation.send`.
    """
    client = Redis.from_url(
        address.for_redis_client(context.settings.broker_url),
        protocol=2,
        socket_connect_timeout=TIMEOUT_SECONDS,
        socket_timeout=TIMEOUT_SECONDS,
    )
    async with client, client.pubsub(ignore_subscribe_messages=True) as channel:
        begun = Conversation(context, question, user_id, client, channel)
        await begun.send()
        yield begun


def _interrupted(reason: str) -> FerretError:
    return FerretError("playground.interrupted", f"{reason}: try again")
