"""Datasets: each is a file with a frozen ``Config`` and a final class ``Dataset`` of instruction examples."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

Role = Literal["system", "user", "assistant"]


class Turn(NamedTuple):
    """One message of a conversation."""

    role: Role
    content: str


class Example(NamedTuple):
    """One instruction with its answer; ``label`` is the key of skewed partitions.

    ``accepted`` holds further correct answers: training uses ``output`` alone, a score uses the best match. ``turns``
    are the messages of a conversation before its last question, which is the instruction; they take no loss.
    ``unit`` names the person or thing that a guarantee of privacy is for; empty unless it was requested.
    """

    instruction: str
    input: str
    output: str
    label: str = ""
    accepted: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()
    unit: str = ""


class FederatedDataset(Protocol):
    """The interface of the class ``Dataset`` in ``ferret_core/datasets/<name>.py``."""

    def __init__(self, config: Any) -> None: ...

    def train(self) -> list[Example]:
        """Returns the training examples; raises ``dataset.invalid``, which names file, line and field."""
        ...

    def test(self) -> list[Example]:
        """Returns the held-out examples."""
        ...


@runtime_checkable
class NamesUnits(Protocol):
    """Additional interface of a ``Dataset`` with a field that several examples of a person share."""

    def with_units(self, field: str) -> FederatedDataset:
        """Returns the same data with the value of ``field`` as each training example's unit.

        ``train`` then raises ``privacy.unit_missing``, which names file, line and field.
        """
        ...


@runtime_checkable
class HoldsOutLabels(Protocol):
    """Additional interface of a ``Dataset`` with test examples of labels that are not in the training data."""

    def first_held_out(self, labels: Set[str]) -> list[str]:
        """Returns the labels of the training examples, in the order in which a validation split takes them."""
        ...
