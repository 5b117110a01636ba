"""Measurement of a data set for a plan: lengths in tokens, and the number of held-out examples."""

from __future__ import annotations

from statistics import fmean

from ferret_core import catalog
from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.datasets.tokenization.tokenize import longest, shard_of
from ferret_core.experiment.estimate import TokenLengths
from ferret_core.experiment.federated_data import deal
from ferret_core.models.load import context_of, skeleton
from ferret_core.protocol.spec import ExperimentSpec

SAMPLE = 512
"""Maximum number of examples that are tokenised, evenly spaced over the training split."""


def measure(spec: ExperimentSpec) -> TokenLengths | None:
    """Returns the lengths of :func:`sample` with the number of held-out examples; None for a model on the hub.

    Raises as :func:`sample`.
    """
    if (shard := sample(spec)) is None:
        return None
    return TokenLengths(
        mean=fmean(len(prompt) + len(response) for prompt, response in shard.examples),
        answer=fmean(len(response) for _, response in shard.examples),
        longest=shard.longest,
        cut=shard.truncated / len(shard),
        held_out=_held_out(spec),
    )


def _held_out(spec: ExperimentSpec) -> int:
    """Returns the number of held-out examples; no training split is dealt out."""
    nobody = spec.participants.model_copy(update={"simulated": 0})
    return len(deal(spec.model_copy(update={"participants": nobody})).held_out)


def sample(spec: ExperimentSpec) -> ClientData | None:
    """Tokenises a sample of the training split with the model's tokenizer; None for a model on the hub.

    Raises ``dataset.invalid`` for unreadable data, and ``model.invalid``.
    """
    loaded = skeleton(spec.model, anywhere=True)
    if loaded is None:
        return None
    examples = catalog.dataset(spec.dataset).train()
    chosen = [examples[index] for index in range(0, len(examples), max(1, -(-len(examples) // SAMPLE)))]
    most = longest(spec.prompt, loaded.tokenizer, context_of(loaded.model))
    return shard_of(chosen, loaded.tokenizer, most, spec.prompt.template)
