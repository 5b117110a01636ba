"""The interface of a benchmark: a file with one final class ``Benchmark``. A complete toy::

class Benchmark:
    def run(self, say, *, bounds=False, quick=False, max_seconds=600.0):
        say("adding")
        return {"machine": machine(), "seconds": seconds(lambda: sum(range(1000)), torch.device("cpu"))}

    def tables(self, document):
        return [Table("a sum", ["seconds"], [[document["seconds"]]])]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Say = Callable[[str], None]
Document = dict[str, Any]


class Table(NamedTuple):
    """A part of a document for people; None is shown as a dash."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


def shown(value: Any) -> Any:
    """A number in a table, with four digits; other values as they are."""
    return f"{value:.4g}" if isinstance(value, float) else value


class Benchmark(Protocol):
    """The interface of ``ferret_bench/<name>.py``'s class ``Benchmark``.

    One that can measure an experiment of the user's takes it as ``experiment`` when it is made.
    """

    def run(self, say: Say, *, bounds: bool, quick: bool, max_seconds: float) -> Document:
        """Measures, and returns a JSON document. ``say`` receives a line for each step.

        ``bounds``: only measurements with a bound; ``quick``: small sizes; ``max_seconds``: the approximate time limit.
        """
        ...

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        """The same document as tables."""
        ...
