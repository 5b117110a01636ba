"""Measurement of a data set for a plan: lengths in tokens, and the number of held-out examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nlargest
from statistics import fmean
from typing import NamedTuple

from ferret_core import catalog
from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.datasets.tokenization.tokenize import longest, shard_of
from ferret_core.experiment.estimate import TokenLengths
from ferret_core.experiment.federated_data import deal
from ferret_core.models.load import context_of, skeleton
from ferret_core.protocol.spec import ExperimentSpec

SAMPLE = 512
"""Maximum number of examples that are tokenised, evenly spaced over the training split."""
LONGEST_TEXTS = 16
"""Number of examples with the most characters that are tokenised too: one of them has the most tokens, as a rule."""


def measure(spec: ExperimentSpec) -> TokenLengths | None:
    """Returns the lengths of :func:`sample` with the number of held-out examples; None for a model on the hub.

    The longest example is that of the whole training split. Raises as :func:`sample`.
    """
    if (training := _training(spec)) is None:
        return None
    shard = training.tokenise(_spaced(training.examples))
    return TokenLengths(
        mean=fmean(len(prompt) + len(response) for prompt, response in shard.examples),
        answer=fmean(len(response) for _, response in shard.examples),
        longest=max(shard.longest, training.tokenise(nlargest(LONGEST_TEXTS, training.examples, _characters)).longest),
        cut=shard.truncated / len(shard),
        held_out=_held_out(spec),
    )


def sample(spec: ExperimentSpec) -> ClientData | None:
    """Tokenises a sample of the training split with the model's tokenizer; None for a model on the hub.

    Raises ``dataset.invalid`` for unreadable data, and ``model.invalid``.
    """
    training = _training(spec)
    return None if training is None else training.tokenise(_spaced(training.examples))


class _Training(NamedTuple):
    """The training split, and its tokenizer."""

    examples: Sequence[Example]
    tokenise: Callable[[Sequence[Example]], ClientData]


def _training(spec: ExperimentSpec) -> _Training | None:
    loaded = skeleton(spec.model, anywhere=True)
    if loaded is None:
        return None
    examples = catalog.dataset(spec.dataset).train()
    most = longest(spec.prompt, loaded.tokenizer, context_of(loaded.model))
    return _Training(examples, lambda chosen: shard_of(chosen, loaded.tokenizer, most, spec.prompt.template))


def _spaced(examples: Sequence[Example]) -> list[Example]:
    return [examples[index] for index in range(0, len(examples), max(1, -(-len(examples) // SAMPLE)))]


def _characters(example: Example) -> int:
    earlier = sum(len(turn.content) for turn in example.turns)
    return earlier + len(example.instruction) + len(example.input) + len(example.output)


def _held_out(spec: ExperimentSpec) -> int:
    """Returns the number of held-out examples; no training split is dealt out."""
    nobody = spec.participants.model_copy(update={"simulated": 0})
    return len(deal(spec.model_copy(update={"participants": nobody})).held_out)
