"""The interface of a part: a file in ``parts`` with one final class ``Suite``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ferret_bench._base import Table
from ferret_bench.gpu.setup import Setup

Found = dict[str, Any]
Step = Callable[[Setup], Found]
Done = Mapping[str, Found]
"""Results of steps by name, without failed and skipped ones."""


class Suite(Protocol):
    """A part. ``title`` and ``lead`` are printed on the page. ``seconds`` is the time limit of all steps together."""

    title: str
    lead: str
    seconds: float

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        """Returns the steps by name, in order. A step's result is JSON."""
        ...

    def tables(self, done: Done) -> Sequence[Table]:
        """Returns the results as tables for people."""
        ...
