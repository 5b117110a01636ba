"""Examples excluded from training: the validation split, to choose settings without the test examples, and from it
the development examples, which the server uses to decide about a round before it counts, and the public examples, from
which an algorithm takes its bases.

The validation split follows from the dataset and the share alone, not from the experiment's seed: all trials of a
search are compared on the same examples. If the test examples are a random part of the data, so is the validation
split. If they are of labels that are not in the training data (:class:`~ferret_core.datasets.base.HoldsOutLabels`), it
takes whole labels too, because settings that suit the training labels may not suit others.

Development and public examples are used neither for training nor for results: they are removed from the clients'
training data and, if the validation split is evaluated, from that too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ferret_core.datasets.base import Example, FederatedDataset, HoldsOutLabels
from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.rounding import ceil_share


def without_validation(source: FederatedDataset, share: float) -> tuple[list[Example], list[Example]]:
    """Returns the training examples, and the validation examples: ``share`` of the examples or of the labels, rounded
    up.

    Examples of the same text stay together. The test examples are not read. Raises ``dataset.invalid`` for a share that
    leaves no training examples.
    """
    examples = source.train()
    if isinstance(source, HoldsOutLabels):
        ordered = source.first_held_out({example.label for example in examples})
        aside = set(ordered[: _part(share, len(ordered), "labels")])
        return _divide(examples, [example.label in aside for example in examples])
    return divide_by_rank(examples, lambda texts: _part(share, texts, "examples"))


def divide_by_rank(examples: Sequence[Example], part: Callable[[int], int]) -> tuple[list[Example], list[Example]]:
    """Returns the examples to train on, and the held-out ones: all of the texts with the smallest ranks.

    ``part`` returns the number of texts to hold out, at least 1, from the number of different texts.
    """
    ranks = [rank(example) for example in examples]
    distinct = sorted(set(ranks))
    last = distinct[part(len(distinct)) - 1]
    return _divide(examples, [own <= last for own in ranks])


def _divide(examples: Sequence[Example], chosen: Sequence[bool]) -> tuple[list[Example], list[Example]]:
    """Returns the examples that are not ``chosen``, and the chosen ones."""
    train = [example for example, held_out in zip(examples, chosen, strict=True) if not held_out]
    return train, [example for example, held_out in zip(examples, chosen, strict=True) if held_out]


def _part(share: float, count: int, what: str) -> int:
    part = ceil_share(share, count)
    if part >= count:
        message = f"of {count} {what} none is left to train on: lower it, or give more data"
        raise FerretError.of_field("dataset.invalid", "evaluation.validation_share", share, message)
    return part


def rank(example: Example) -> str:
    """Returns the BLAKE3 digest of the text, the default order of examples: the smallest are held out.

    It needs no seed and does not depend on the order of the lines, so every process that reads a file holds out the
    same examples. Examples that differ only in further accepted answers have the same rank.
    """
    turns = [[list(turn) for turn in example.turns]] if example.turns else []
    return digest_json([example.instruction, example.input, example.output, example.label, *turns])


def choose_development(
    validation: Sequence[Example], count: int, field: str = "server.development_examples"
) -> list[Example]:
    """Chooses ``count`` validation examples with different texts, evenly spaced in the order of their ranks.

    ``field`` is the option with the count. Raises ``dataset.invalid`` unless there are more than ``count``, because at
    least one must be left to evaluate.
    """
    by_rank = {rank(example): example for example in validation}
    if len(by_rank) <= count:
        message = (
            f"the validation split has {len(by_rank)} examples of different texts: use fewer, or raise "
            "evaluation.validation_share or the data"
        )
        raise FerretError.of_field("dataset.invalid", field, count, message)
    ordered = [by_rank[own] for own in sorted(by_rank)]
    return [ordered[index * len(ordered) // count] for index in range(count)]


def without_development(examples: Iterable[Example], development: Iterable[Example]) -> list[Example]:
    """Returns the examples without texts of development examples."""
    taken = {rank(example) for example in development}
    return [example for example in examples if rank(example) not in taken]


def require_apart(
    chosen: Sequence[Example], held_out: Iterable[Example], field: str = "server.development_examples"
) -> None:
    """Raises ``dataset.invalid`` if a ``chosen`` example is also held out for the evaluation.

    ``field`` is the option with their number.
    """
    both = {rank(example) for example in chosen} & {rank(example) for example in held_out}
    if both:
        message = (
            f"{len(both)} of these examples are test examples too, and training must not depend on these: take the "
            "texts that are in both out of the training data"
        )
        raise FerretError.of_field("dataset.invalid", field, len(chosen), message)
