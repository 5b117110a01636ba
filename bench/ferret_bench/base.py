"""The interface of a benchmark: a file with one final class ``Benchmark``. A complete toy::

class Benchmark(base.Benchmark):
    def measure(self, say, asked):
        say("adding")
        return {"sum_seconds": seconds(lambda: sum(range(1000)), torch.device("cpu"))}

    def tables(self, document):
        return [Table("a sum", ["seconds"], [[document["sum_seconds"]]])]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from ferret_bench._machine import machine

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


class Asked(NamedTuple):
    """``bounds``: only what has a bound; ``quick``: small sizes; ``max_seconds``: the approximate time limit."""

    bounds: bool
    quick: bool
    max_seconds: float


class Benchmark(ABC):
    """The interface of ``ferret_bench/<name>.py``'s class ``Benchmark``.

    One that can measure an experiment of the user's takes it as ``experiment`` when it is made.
    """

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 600.0) -> Document:
        """Measures, and returns a JSON document. ``say`` receives a line for each step."""
        begin, asked = perf_counter(), Asked(bounds, quick, max_seconds)
        found = self.measure(say, asked)
        return {
            "benchmark": type(self).__module__.rpartition(".")[2],
            "asked": asked._asdict(),
            "machine": machine(),
            **found,
            "seconds": perf_counter() - begin,
        }

    @abstractmethod
    def measure(self, say: Say, asked: Asked) -> Document:
        """Returns what the document has of this benchmark alone, ``bounds`` among it if there are any."""

    @abstractmethod
    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        """The same document as tables."""
