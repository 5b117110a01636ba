"""Waiting for events of a run, with a deadline."""

from __future__ import annotations

import time
from typing import NamedTuple, Self

from ferret_core.protocol.errors import FerretError
from ferret_sdk.service.run import Run

LOOK_SECONDS = 0.2


class Deadline(NamedTuple):
    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Returns the remaining seconds. Raises ``experiment.timeout`` after the deadline."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise FerretError("experiment.timeout", "there is no time left: raise --max-seconds")
        return left


def await_round(run: Run, number: int, deadline: Deadline) -> None:
    """Waits until round ``number`` is committed. Raises the error of a run that ends before."""
    while run.refresh().experiment.round < number:
        if run.state.finished:
            run.require_completed()
        deadline.left()
        time.sleep(LOOK_SECONDS)
