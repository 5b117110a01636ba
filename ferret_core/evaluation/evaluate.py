"""Measures a model on the held-out examples of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import nn

from ferret_core.datasets._base import Example
from ferret_core.datasets._encoding import encode_prompts, shard_of
from ferret_core.evaluation.generate import generate
from ferret_core.evaluation.loss import mean_loss
from ferret_core.evaluation.rouge import rouge_l
from ferret_core.models.load import LoadedModel
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import EvaluationSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def evaluate(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, examples: Sequence[Example], spec: EvaluationSpec
) -> dict[str, float]:
    """``eval_loss`` in nats per response token and, unless ``spec.generate`` is 0, ``rouge_l`` in percent.

    Where there are more examples than asked for, evenly spaced ones are taken, so that a file sorted by task is
    still covered. The same weights give the same figures on any run with the same number of CPU threads. Raises
    ``spec.invalid`` if an answer of ``max_new_tokens`` leaves no room for a prompt.
    """
    context = LoadedModel(model, tokenizer).context
    if spec.generate and spec.max_new_tokens >= context:
        message = f"the model's context is {context} tokens: use fewer, and leave room for the prompt"
        raise FerretError.of_field("spec.invalid", "evaluation.max_new_tokens", spec.max_new_tokens, message)
    chosen = _spread(examples, spec.examples)
    metrics = {"eval_loss": mean_loss(model, shard_of(chosen, tokenizer, context), spec.batch_size)}
    if spec.generate:
        asked = _spread(chosen, spec.generate)
        prompts = encode_prompts(asked, tokenizer, context - spec.max_new_tokens)
        answers = generate(model, tokenizer, prompts, spec.max_new_tokens, spec.batch_size)
        metrics["rouge_l"] = rouge_l(answers, [example.output for example in asked])
    return metrics


def _spread(examples: Sequence[Example], count: int) -> list[Example]:
    """``count`` of the examples at even distances, in their order; all if there are not more."""
    count = min(count, len(examples))
    return [examples[index * len(examples) // count] for index in range(count)]
