"""Measurement of a data set for a plan: lengths in tokens of the training examples and of the evaluated ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nlargest
from statistics import fmean
from typing import NamedTuple

from ferret_core import catalog
from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.datasets.tokenization.tokenize import longest, shard_of
from ferret_core.evaluation.evaluate import spread
from ferret_core.experiment.estimate import EvaluationLengths, TokenLengths
from ferret_core.experiment.federated_data import deal
from ferret_core.models.load import context_of, skeleton
from ferret_core.protocol.spec import ExperimentSpec

SAMPLE = 512
"""Maximum number of examples that are tokenised, evenly spaced over the training split."""
LONGEST_TEXTS = 16
"""Number of examples with the most characters that are tokenised too: one of them has the most tokens, as a rule."""


def measure(spec: ExperimentSpec) -> TokenLengths | None:
    """Returns the lengths of :func:`sample` and of an evaluation's examples; None for a model on the hub.

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
        evaluation=_evaluation(spec, training.tokenise),
    )


def sample(spec: ExperimentSpec) -> ClientData | None:
    """Tokenises a sample of the training split with the model's tokenizer; None for a model on the hub.

    Raises ``dataset.invalid`` for unreadable data, and ``model.invalid``.
    """
    training = _training(spec)
    return None if training is None else training.tokenise(_spaced(training.examples))


Tokenise = Callable[[Sequence[Example]], ClientData]


class _Training(NamedTuple):
    """The training split, and its tokenizer."""

    examples: Sequence[Example]
    tokenise: Tokenise


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


def _evaluation(spec: ExperimentSpec, tokenise: Tokenise) -> EvaluationLengths:
    """Returns the lengths of the held-out examples that an evaluation takes; no training split is dealt out."""
    nobody, evaluation = spec.participants.model_copy(update={"simulated": 0}), spec.evaluation
    chosen = spread(deal(spec.model_copy(update={"participants": nobody})).held_out, evaluation.examples)
    shard = tokenise(spread(chosen, SAMPLE))
    prompts = list[int]()
    if evaluation.generate_examples:
        asked = tokenise(spread(chosen, evaluation.generate_examples))
        prompts = sorted((len(prompt) for prompt, _ in asked.examples), reverse=True)
    size = evaluation.batch_size
    padded = [len(batch) * batch[0] for batch in (prompts[at : at + size] for at in range(0, len(prompts), size))]
    return EvaluationLengths(
        examples=len(chosen),
        mean=fmean(len(prompt) + len(response) for prompt, response in shard.examples),
        answer=fmean(len(response) for _, response in shard.examples),
        prompt=sum(padded) / max(1, len(prompts)),
    )
