"""A site's rounds as a loop: the round waits while the loop's body trains.

::

    for task in tasks(lambda site: participant.run("records.jsonl", site=site)):
        loss = my_training(task.model, task.examples, task.context.steps)
        task.submit(loss)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from ferret_core.client.hooks import Site

if TYPE_CHECKING:
    from torch import nn

    from ferret_core.datasets.base import Example
    from ferret_core.training.custom_training import TrainingContext


class RoundAbandoned(Exception):
    """The loop was left in the middle of a round, which is abandoned."""


class RoundHandle:
    """One round; the loop's body must move ``model`` in place, like a function under ``@site.train``."""

    def __init__(self, model: nn.Module, examples: Sequence[Example], context: TrainingContext) -> None:
        self.model = model
        self.examples = examples
        self.context = context
        self.answered = False
        self._answer = SimpleQueue[float | BaseException | None]()

    def submit(self, loss: float | None = None) -> None:
        """Sends the trained model's contribution, with its training's mean ``loss`` if given; call it once per task."""
        if self.answered:
            raise TypeError("a task is submitted once")
        self._put(loss)

    def abandon(self) -> None:
        """Abandons the round; nothing is sent."""
        if not self.answered:
            self._put(RoundAbandoned("the loop over the tasks was left before this one was submitted"))

    def wait(self) -> float | None:
        """Waits until the loop has submitted the task; raises :class:`RoundAbandoned`."""
        answer = self._answer.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _put(self, answer: float | BaseException | None) -> None:
        self.answered = True
        self._answer.put(answer)


def tasks(run: Callable[[Site], Any]) -> Generator[RoundHandle, None, None]:
    """Yields the rounds of ``run``, which is called with a :class:`Site` on a separate thread, until it returns.

    Raises its exceptions, and ``TypeError`` for a task that the loop's body did not submit. Leaving the loop abandons
    the round, and ``run`` ends when it next trains.
    """
    rounds = _Rounds()

    def work() -> None:
        try:
            run(rounds.site)
        except BaseException as error:
            rounds.end(error)
        else:
            rounds.end(None)

    Thread(target=work, name="ferret-tasks", daemon=True).start()
    try:
        while (task := rounds.next()) is not None:
            yield task
            if not task.answered:
                raise TypeError("the body of the loop has to call task.submit() before the next task comes")
    finally:
        rounds.leave()


class _Rounds:
    """Tasks on their way from the running thread to the loop."""

    def __init__(self) -> None:
        self.site = Site()
        self.site.train(self._train)
        self._found = SimpleQueue[RoundHandle | BaseException | None]()
        self._last: RoundHandle | None = None
        self._left = Event()

    def next(self) -> RoundHandle | None:
        """Returns the next task, None at the end; raises the exception that ended the run."""
        found = self._found.get()
        if isinstance(found, BaseException):
            raise found
        self._last = found
        return found

    def end(self, error: BaseException | None) -> None:
        self._found.put(error)

    def leave(self) -> None:
        """Abandons the loop's current task, and every later one."""
        self._left.set()
        if self._last is not None:
            self._last.abandon()
        while not self._found.empty():
            if isinstance(found := self._found.get(), RoundHandle):
                found.abandon()

    def _train(self, model: nn.Module, examples: Sequence[Example], context: TrainingContext) -> float | None:
        task = RoundHandle(model, examples, context)
        self._found.put(task)
        if self._left.is_set():  # the loop may have checked before
            task.abandon()
        return task.wait()
