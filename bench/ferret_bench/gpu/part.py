"""What a part is: a file in ``parts`` with one final class ``Part``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ferret_bench._base import Table
from ferret_bench.gpu.setup import Setup

Found = dict[str, Any]
Step = Callable[[Setup], Found]
Done = Mapping[str, Found]
"""What steps found, by name; those that failed or were not run are left out."""


class Part(Protocol):
    """``title`` and ``lead`` stand on the page. ``seconds`` is how long all steps together may take."""

    title: str
    lead: str
    seconds: float

    def steps(self, setup: Setup) -> Mapping[str, Step]:
        """The steps by name, in order; what one finds is what JSON can hold."""
        ...

    def tables(self, done: Done) -> Sequence[Table]:
        """What was found, for people."""
        ...
