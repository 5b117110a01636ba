"""One question: each selected model's answer, token by token, or an example question."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch

from ferret_core.datasets.base import Example
from ferret_core.evaluation.streaming_generation import SamplingOptions, answer, question_ids
from ferret_core.experiment.federated_data import deal
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.playground import ModelSide, PlaygroundQuestion
from ferret_core.storage import Storage
from ferret_core.system import memory_limit, untrusted_files
from ferret_core.system.device import chosen_device, memory_checked
from ferret_db.database import Database
from ferret_db.engine.task_attempts import described
from ferret_db.repositories import experiments
from ferret_worker.playground.model_cache import ModelCache
from ferret_worker.playground.requester import Requester, RequesterGone
from ferret_worker.settings import WorkerSettings


class IdleTimer:
    """``with idle:`` is a use. A thread calls ``let_go`` ``seconds`` after the last use, and never during one."""

    def __init__(self, seconds: float, let_go: Callable[[], None]) -> None:
        self._seconds = seconds
        self._let_go = let_go
        self._lock = threading.Lock()
        self._uses = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._uses += 1

    def __exit__(self, *error: object) -> None:
        timer = threading.Timer(self._seconds, self._end, [self._uses])
        timer.daemon = True
        timer.start()
        self._lock.release()

    def _end(self, uses: int) -> None:
        with self._lock:
            if uses == self._uses:
                self._let_go()


logger = logging.getLogger(__name__)

REMEDY = "choose a smaller model, or give the playground's worker more memory: FERRET_TASK_MEMORY_BYTES"


class Answering:
    """State that is loaded with the first question."""

    def __init__(self, settings: WorkerSettings, database: Database, storage: Storage) -> None:
        if settings.threads:
            torch.set_num_threads(settings.threads)
        where = chosen_device(settings.device)
        if where.type == "cpu":
            memory_limit.limit(settings.memory_limit)
        self._settings = settings
        self._database = database
        self._models = ModelCache(database, storage, settings.playground_models, where)
        self._idle = IdleTimer(settings.playground_idle_seconds, self._models.forget)
        self._held_out = lru_cache(maxsize=1)(self._read_held_out)

    def answer(self, question: PlaygroundQuestion, asker: Requester) -> None:
        """Sends all messages of the answer to ``question``; the last is ``end`` or ``problem``."""
        try:
            with self._idle, memory_checked(REMEDY), untrusted_files.allowed_roots(self._settings.readable):
                if question.kind == "example":
                    self._give_example(question, asker)
                else:
                    for side, number in question.rounds.items():
                        self._ask(side, number, question, asker)
            asker.say("end")
        except RequesterGone:
            raise
        except Exception as error:
            self._tell(error, question, asker)

    def _ask(self, side: ModelSide, number: int, question: PlaygroundQuestion, asker: Requester) -> None:
        asker.say("loading", side=side, round=number)
        model, tokenizer, _ = self._models.at(question.experiment, number)
        asker.check()
        begun, most = time.monotonic(), self._settings.playground_seconds

        def check() -> None:
            asker.check()
            if time.monotonic() - begun > most:
                reason = f"the answer took more than {most} s: ask for fewer tokens, or raise FERRET_PLAYGROUND_SECONDS"
                raise FerretError("task.too_long", reason)

        said = answer(
            model,
            tokenizer,
            question_ids(tokenizer, question.question, question.input),
            question.max_new_tokens,
            lambda text: asker.say("text", side=side, text=text),
            sampling=SamplingOptions(question.temperature, question.seed),
            on_token=check,
        )
        seconds = time.monotonic() - begun
        asker.say("done", side=side, tokens=said.tokens, seconds=seconds, ended=said.ended)

    def _give_example(self, question: PlaygroundQuestion, asker: Requester) -> None:
        held_out = self._held_out(question.experiment)
        if not held_out:
            raise FerretError("playground.no_example", "write your own question")
        number = question.seed % len(held_out)
        example = held_out[number]
        references = [example.output, *example.accepted]
        asker.say("example", number=number, question=example.instruction, input=example.input, references=references)

    def _read_held_out(self, experiment_id: str) -> Sequence[Example]:
        with self._database.read() as s:
            spec = experiments.spec_of(experiments.get(s, experiment_id))
        return deal(spec).held_out

    def _tell(self, error: Exception, question: PlaygroundQuestion, asker: Requester) -> None:
        found = described(error)
        if found.code == "internal":
            logger.exception("a question to %s failed", question.experiment)
        else:
            logger.info("a question to %s was not answered: %s", question.experiment, found.detail)
        if found.code == "memory.exhausted":
            self._models.forget()
        asker.say("problem", **found.to_json())
