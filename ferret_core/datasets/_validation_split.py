"""The validation split: training examples that nobody trains on, so that settings are chosen without the test examples.

Which ones follows from the dataset and the share alone, not from the experiment's seed: all trials of a search compare
on the same examples. Where the test examples are a random part of the data, so is the validation split; where they are
of labels that nobody trains on (:class:`~ferret_core.datasets._base.HoldsOutLabels`), it is whole labels too, since
settings that are right for the labels one has trained on need not be right for others.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ferret_core.datasets._base import Example, FederatedDataset, HoldsOutLabels
from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError


def without_validation(source: FederatedDataset, share: float) -> tuple[list[Example], list[Example]]:
    """What is left to train on, and the validation examples: ``share`` of the examples or of the labels, rounded up.

    Examples of the same text stay together. The test examples are not read. Raises ``dataset.invalid`` for a share
    that leaves nothing to train on.
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
    """The share, taken as it is written: the binary fraction nearest to 0.07 makes more than 7 of 100."""
    part = math.ceil(Fraction(str(share)) * count)
    if part >= count:
        message = f"of {count} {what} none is left to train on: lower it, or give more data"
        raise FerretError.of_field("dataset.invalid", "evaluation.validation", share, message)
    return part


def rank(example: Example) -> str:
    """The BLAKE3 digest of the text, which orders examples where nothing else decides: the smallest are held out.

    It needs no seed and does not depend on the order of the lines, so every process that reads a file holds out the
    same examples. Examples that differ only in further accepted answers have the same rank.
    """
    return digest_json([example.instruction, example.input, example.output, example.label])
