"""Development examples: a few of the validation split, by which the server decides about a round before it counts.

Nobody trains on them, and no result is read from them: they are taken out of what clients train on and, where the
validation split is evaluated, out of that too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferret_core.datasets._base import Example
from ferret_core.datasets._validation_split import rank
from ferret_core.protocol.errors import FerretError


def chosen(validation: Sequence[Example], count: int) -> list[Example]:
    """``count`` of the validation examples, of different texts and at even distances in the order of their ranks.

    Raises ``dataset.invalid`` where there are not more than that, one at least being left to evaluate.
    """
    by_rank = {rank(example): example for example in validation}
    if len(by_rank) <= count:
        message = (
            f"the validation split has {len(by_rank)} examples of different texts: use fewer, or raise "
            "evaluation.validation or the data"
        )
        raise FerretError.of_field("dataset.invalid", "server.development", count, message)
    ordered = [by_rank[own] for own in sorted(by_rank)]
    return [ordered[index * len(ordered) // count] for index in range(count)]


def without(examples: Iterable[Example], development: Iterable[Example]) -> list[Example]:
    """The examples whose text is not that of a development example."""
    taken = {rank(example) for example in development}
    return [example for example in examples if rank(example) not in taken]


def require_apart(development: Sequence[Example], held_out: Iterable[Example]) -> None:
    """Raises ``dataset.invalid`` where a development example is held out for the evaluation too."""
    both = {rank(example) for example in development} & {rank(example) for example in held_out}
    if both:
        message = (
            f"{len(both)} of the development examples are test examples too, and no round may be chosen by these: "
            "take the texts that are in both out of the training data"
        )
        raise FerretError.of_field("dataset.invalid", "server.development", len(development), message)
