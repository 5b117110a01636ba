"""The requester of a question, connected to the answering worker by two Redis channels."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import redis

from ferret_core.protocol.errors import Exit, FerretError
from ferret_core.protocol.playground import (
    ALIVE_SECONDS,
    Kind,
    PlaygroundMessage,
    PlaygroundQuestion,
    requester_channel,
    worker_channel,
)

logger = logging.getLogger(__name__)

QUESTION_SECONDS = 10.0
"""Seconds for the question to arrive once its worker is ready."""
GRACE_SECONDS = 60.0
"""Seconds that work may continue after its requester has gone: loading and a single step cannot be interrupted."""


class RequesterGone(Exception):
    """Raised when nobody receives the answer."""


class Requester:
    """Receives the messages about the question with this id. Two threads use it: one works, one sends heartbeats."""

    def __init__(self, client: redis.Redis, question_id: str, stopping: Callable[[], bool] = lambda: False) -> None:
        self._client = client
        self._id = question_id
        self._stopping = stopping
        self._number = 0
        self._gone = False
        self._lock = threading.Lock()

    def say(self, kind: Kind, **data: Any) -> None:
        """Sends a message. Raises :class:`RequesterGone` if nobody receives it."""
        with self._lock:
            word = PlaygroundMessage(self._number, kind, data)
            self._number += 1
            heard = self._client.publish(requester_channel(self._id), word.encode())
        if not heard:
            self._gone = True
            raise RequesterGone(f"{kind} was not heard")

    def check(self) -> None:
        """Raises :class:`RequesterGone`, and ``worker.stopping`` once this process was stopped."""
        if self._gone:
            raise RequesterGone("a sign of life was not heard")
        if self._stopping():
            raise FerretError("worker.stopping", "the worker that answered is being stopped: ask again")

    def question(self) -> PlaygroundQuestion:
        """Announces a worker and waits for the question."""
        with self._client.pubsub(ignore_subscribe_messages=True) as channel:
            channel.subscribe(worker_channel(self._id))
            channel.get_message(timeout=QUESTION_SECONDS)  # confirmation of the subscription
            self.say("ready")
            deadline = time.monotonic() + QUESTION_SECONDS
            while (left := deadline - time.monotonic()) > 0:
                message: Any = channel.get_message(timeout=left)
                if message is not None:
                    return PlaygroundQuestion.model_validate_json(message["data"])
        raise RequesterGone(f"no question came within {QUESTION_SECONDS:.0f} s")

    @contextmanager
    def kept_company(self) -> Generator[None]:
        """Sends a heartbeat every second of the block.

        If the work continues for a minute after its requester has gone, this ends the process; a supervisor starts
        another.
        """
        over = threading.Event()
        thread = threading.Thread(target=self._keep_alive, args=(over,), name="alive", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _keep_alive(self, over: threading.Event) -> None:
        while not over.wait(ALIVE_SECONDS):
            try:
                self.say("alive")
            except RequesterGone:
                if not over.wait(GRACE_SECONDS):
                    logger.error(
                        "this process ends and another replaces it: it still computes an answer without a reader"
                    )
                    os._exit(Exit.FAILURE)
                return
            except redis.RedisError as error:
                logger.info("no sign of life, Redis does not answer: %s", error)
