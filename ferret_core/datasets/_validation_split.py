"""The validation split: training examples excluded from training, to choose settings without the test examples.

It follows from the dataset and the share alone, not from the experiment's seed: all trials of a search are compared on
the same examples. If the test examples are a random part of the data, so is the validation split. If they are of labels
that are not in the training data (:class:`~ferret_core.datasets._base.HoldsOutLabels`), it takes whole labels too,
because settings that suit the training labels may not suit others.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ferret_core.datasets._base import Example, FederatedDataset, HoldsOutLabels
from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError


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
        chosen = [example.label in aside for example in examples]
    else:
        ranks = [rank(example) for example in examples]
        distinct = sorted(set(ranks))
        last = distinct[_part(share, len(distinct), "examples") - 1]
        chosen = [own <= last for own in ranks]
    train = [example for example, held_out in zip(examples, chosen, strict=True) if not held_out]
    return train, [example for example, held_out in zip(examples, chosen, strict=True) if held_out]


def _part(share: float, count: int, what: str) -> int:
    """Returns the share of its decimal value: the binary fraction nearest to 0.07 gives more than 7 of 100."""
    part = math.ceil(Fraction(str(share)) * count)
    if part >= count:
        message = f"of {count} {what} none is left to train on: lower it, or give more data"
        raise FerretError.of_field("dataset.invalid", "evaluation.validation_share", share, message)
    return part


def rank(example: Example) -> str:
    """Returns the BLAKE3 digest of the text, the default order of examples: the smallest are held out.

    It needs no seed and does not depend on the order of the lines, so every process that reads a file holds out the
    same examples. Examples that differ only in further accepted answers have the same rank.
    """
    return digest_json([example.instruction, example.input, example.output, example.label])
