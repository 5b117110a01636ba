"""Development examples: a few validation examples that the server uses to decide about a round before it counts.

They are used neither for training nor for results: they are removed from the clients' training data and, if the
validation split is evaluated, from that too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferret_core.datasets._base import Example
from ferret_core.datasets._validation_split import rank
from ferret_core.protocol.errors import FerretError


def chosen(validation: Sequence[Example], count: int) -> list[Example]:
    """Chooses ``count`` validation examples with different texts, evenly spaced in the order of their ranks.

    Raises ``dataset.invalid`` unless there are more than ``count``, because at least one must be left to evaluate.
    """
    by_rank = {rank(example): example for example in validation}
    if len(by_rank) <= count:
        message = (
            f"the validation split has {len(by_rank)} examples of different texts: use fewer, or raise "
            "evaluation.validation_share or the data"
        )
        raise FerretError.of_field("dataset.invalid", "server.development_examples", count, message)
    ordered = [by_rank[own] for own in sorted(by_rank)]
    return [ordered[index * len(ordered) // count] for index in range(count)]


def without(examples: Iterable[Example], development: Iterable[Example]) -> list[Example]:
    """Returns the examples without texts of development examples."""
    taken = {rank(example) for example in development}
    return [example for example in examples if rank(example) not in taken]


def require_apart(development: Sequence[Example], held_out: Iterable[Example]) -> None:
    """Raises ``dataset.invalid`` if a development example is also held out for the evaluation."""
    both = {rank(example) for example in development} & {rank(example) for example in held_out}
    if both:
        message = (
            f"{len(both)} of the development examples are test examples too, and no round may be chosen by these: "
            "take the texts that are in both out of the training data"
        )
        raise FerretError.of_field("dataset.invalid", "server.development_examples", len(development), message)
