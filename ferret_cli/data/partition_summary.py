"""Summary of the clients' examples, in numbers."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.experiment.federated_data import FederatedSplit
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec, PromptSpec


class Holding(NamedTuple):
    """One client's examples by label; the number of tokens, and of cut examples, if counted."""

    client: str
    labels: dict[str, int]
    tokens: int | None
    truncated: int | None

    @property
    def examples(self) -> int:
        return sum(self.labels.values())


def holdings(dealt: FederatedSplit, tokenised: Callable[[Sequence[Example]], ClientData] | None) -> list[Holding]:
    """Returns one summary per client, in order; with ``tokenised``, each shard is tokenised and released."""
    return [_holding(name, [dealt.train[index] for index in shard], tokenised) for name, shard in dealt.clients.items()]


def document(held: Sequence[Holding], held_out: Sequence[Example]) -> dict[str, Any]:
    """Returns the figures of all clients as one JSON document; without tokens if none were counted."""
    labels: Counter[str] = Counter()
    for holding in held:
        labels.update(holding.labels)
    counts = {
        "examples": [holding.examples for holding in held],
        "labels": [len(holding.labels) for holding in held],
        "tokens": [holding.tokens for holding in held if holding.tokens is not None],
        "truncated": [holding.truncated for holding in held if holding.truncated is not None],
    }
    return {
        "clients": len(held),
        **{name: sum(counts[name]) for name in ("examples", "tokens", "truncated") if counts[name]},
        "labels": dict(sorted(labels.items())),
        "held_out_labels": dict(sorted(Counter(example.label for example in held_out).items())),
        "per_client": {name: _spread(counts[name]) for name in counts if counts[name]},
    }


def rows(held: Sequence[Holding]) -> list[dict[str, str | float | None]]:
    """Returns one row per client and label that it holds."""
    return [
        {"client": holding.client, "label": label, "examples": count}
        for holding in held
        for label, count in sorted(holding.labels.items())
    ]


def tokenised_by(spec: ModelSpec, prompt: PromptSpec) -> Callable[[Sequence[Example]], ClientData]:
    """Returns the function from a shard of examples to this model's input; raises ``model.invalid``."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from ferret_core.datasets.tokenization.tokenize import longest, shard_of
    from ferret_core.models.load import context_of

    options: dict[str, Any] = {"revision": spec.revision, "trust_remote_code": False}
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(spec.source, **options)
        config = AutoConfig.from_pretrained(spec.source, **options)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except (OSError, ValueError, KeyError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FerretError.of_field("model.invalid", "model.source", spec.source, reason) from error
    most = longest(prompt, tokenizer, context_of(model))
    return partial(shard_of, tokenizer=tokenizer, max_tokens=most, template=prompt.template)


def _holding(
    name: str, examples: Sequence[Example], tokenised: Callable[[Sequence[Example]], ClientData] | None
) -> Holding:
    labels = dict(Counter(example.label for example in examples))
    if tokenised is None:
        return Holding(name, labels, None, None)
    shard = tokenised(examples)
    tokens = sum(len(prompt) + len(response) for prompt, response in shard.examples)
    return Holding(name, labels, tokens, shard.truncated)


def _spread(counts: Sequence[int]) -> dict[str, float]:
    return {"min": min(counts), "median": statistics.median(counts), "max": max(counts)}
