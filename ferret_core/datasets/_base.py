"""What a dataset is: a file with a frozen ``Config`` and a final class ``Dataset`` of instruction examples."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Example(NamedTuple):
    """One instruction with its answer; ``label`` is what a skewed partition splits by.

    ``accepted`` holds further answers that count as right: training takes ``output`` alone, a score the best of all.
    """

    instruction: str
    input: str
    output: str
    label: str = ""
    accepted: tuple[str, ...] = ()


class FederatedDataset(Protocol):
    """The interface of ``ferret_core/datasets/<name>.py``'s class ``Dataset``."""

    def __init__(self, config: Any) -> None: ...

    def train(self) -> list[Example]:
        """The examples that participants train on; ``dataset.invalid`` names file, line and field."""
        ...

    def test(self) -> list[Example]:
        """The held-out examples."""
        ...


@runtime_checkable
class HoldsOutLabels(Protocol):
    """What a ``Dataset`` also has if its test examples are of labels that nobody trains on."""

    def first_held_out(self, labels: Set[str]) -> list[str]:
        """The labels of the training examples, in the order in which a validation split takes them."""
        ...
