"""Measurement of a model on the held-out examples of a dataset; docs/researchers/metrics.md lists the metrics.

Exact match is the equality of the final numbers of an answer and its reference: Cobbe et al., "Training Verifiers to
Solve Math Word Problems", 2021, https://arxiv.org/abs/2110.14168, and ``grade_school_math/dataset.py`` in
https://github.com/openai/grade-school-math. A reference has its number in the last line, ``#### 42``; references
without it are not counted. The first number after ``####`` in an answer counts, as there.

Differences from the official code: in an answer without ``####``, which is wrong there, the last number counts. Numbers
are compared, not their texts, so that 5.0 equals 5. Both ignore thousands separators; only this one ignores a dollar
sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from torch import nn

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.tokenize import encode_prompts, longest, shard_of
from ferret_core.evaluation.generate import generate
from ferret_core.evaluation.rouge import rouge_l, rouge_l_paper
from ferret_core.models.load import context_of
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import EvaluationSpec, PromptSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase
import math
import re
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from ferret_core.datasets.tokenization.client_data import Batch, ClientData
from ferret_core.models.parameters import inference
from ferret_core.training.loss import response_loss
from ferret_core.training.micro_batches import MicroBatches, micro_batches

# A minus after a word or a digit is a hyphen or an operator: in 10-5 the last number is 5.
_NUMBER = r"(?:(?<!\w)[-−])?\$?(?:\d[\d,]*(?:\.\d+)?|\.\d+)"
_ANYWHERE = re.compile(_NUMBER)
_MARKED = re.compile(rf"####\s*({_NUMBER})")
_LAST_LINE = re.compile(rf"^####\s*({_NUMBER})\s*\Z", re.MULTILINE)
PLAIN = PromptSpec()


class Total(NamedTuple):
    """``nll``: Σ −log p in nats over ``tokens`` response tokens."""

    nll: float
    tokens: int

    @property
    def mean(self) -> float:
        return self.nll / self.tokens


def total_loss(
    model: nn.Module, shard: ClientData, batch_size: int, on_batch: Callable[[], None] = lambda: None
) -> Total:
    """Returns the loss on all response tokens of ``shard``, summed in one fixed order in double precision.

    ``on_batch`` is called before each batch; an exception in it ends the measurement. A batch that runs out of memory
    is halved, and so are later ones. Raises ``training.non_finite`` if the loss is not finite, and ``memory.exhausted``
    if not even one sequence fits.
    """
    total, tokens, fitting = 0.0, 0, MicroBatches(batch_size)
    with inference(model):
        for batch in shard.ordered(batch_size):
            on_batch()
            for nll, count in fitting.fit(partial(_batch_losses, model, batch)):
                total += nll
                tokens += count
    if not math.isfinite(total):
        raise FerretError(
            "training.non_finite",
            f"the evaluation loss is {total}: lower server.learning_rate or the local learning rate",
        )
    return Total(total, tokens)


def _batch_losses(model: nn.Module, batch: Batch, size: int) -> list[tuple[float, int]]:
    """Returns −log p and the number of response tokens of each part of ``batch``, of at most ``size`` sequences."""
    losses = (response_loss(model, part) for part in micro_batches([batch], size))
    return [(loss.nll.item(), loss.tokens) for loss in losses]


def exact_matches(answers: Sequence[str], references: Sequence[Sequence[str]]) -> list[bool]:
    """Returns True for each answer with the number of one of its references; those without a number are omitted."""
    wanted = [{_value(found[1]) for text in texts if (found := _LAST_LINE.search(text))} for texts in references]
    return [final_number(answer) in numbers for answer, numbers in zip(answers, wanted, strict=True) if numbers]


def final_number(answer: str) -> Decimal | None:
    """Returns the final number of ``answer``, if any."""
    if marked := _MARKED.search(answer):
        return _value(marked[1])
    numbers = _ANYWHERE.findall(answer)
    return _value(numbers[-1]) if numbers else None


def _value(number: str) -> Decimal:
    return Decimal(number.replace(",", "").replace("$", "").replace("−", "-"))


def evaluate(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[Example],
    spec: EvaluationSpec,
    on_batch: Callable[[], None] = lambda: None,
    *,
    prompt: PromptSpec = PLAIN,
) -> dict[str, float]:
    """Returns ``eval_loss`` in nats per response token and, unless ``spec.generate_examples`` is 0, the answers' scores
    in percent.

    These are ``rouge_l``, ``rouge_l_paper`` and, if references end in a number as in GSM8K, ``exact_match``. With
    ``spec.by_label``, ``eval_loss/<label>`` and ``rouge_l/<label>`` are added for every label.

    If there are more examples than requested, evenly spaced ones are taken, label by label, so that all tasks are
    covered. The same weights give the same metrics on any run with the same number of CPU threads. ``on_batch`` is
    called before each batch; an exception in it ends the measurement. Raises ``spec.invalid`` if an answer of
    ``max_new_tokens`` leaves no room for a prompt.
    """
    context = context_of(model)
    if spec.generate_examples and spec.max_new_tokens >= context:
        message = f"the model's context is {context} tokens: use fewer, and leave room for the prompt"
        raise FerretError.of_field("spec.invalid", "evaluation.max_new_tokens", spec.max_new_tokens, message)
    chosen, most = spread(examples, spec.examples), longest(prompt, tokenizer, context)
    losses = {
        label: total_loss(model, shard_of(group, tokenizer, most, prompt.template), spec.batch_size, on_batch)
        for label, group in (_labelled(chosen) if spec.by_label else {"": chosen}).items()
    }
    metrics = _losses(losses)
    if spec.generate_examples:
        asked = spread(chosen, spec.generate_examples)
        room = min(most, context - spec.max_new_tokens)
        prompts = encode_prompts(asked, tokenizer, room, prompt.template)
        size, template = spec.batch_size, prompt.template
        answers = generate(model, tokenizer, prompts, spec.max_new_tokens, size, on_batch, template=template)
        metrics |= _scores(answers, asked, spec.by_label)
    return metrics


def _losses(by_label: dict[str, Total]) -> dict[str, float]:
    whole = Total(sum(total.nll for total in by_label.values()), sum(total.tokens for total in by_label.values()))
    return {"eval_loss": whole.mean} | {f"eval_loss/{label}": total.mean for label, total in by_label.items() if label}


def _scores(answers: Sequence[str], examples: Sequence[Example], by_label: bool) -> dict[str, float]:
    references = [(example.output, *example.accepted) for example in examples]
    rouge = rouge_l(answers, references)
    scores = {
        "rouge_l": fmean(rouge),
        "rouge_l_paper": fmean(rouge_l_paper(answers, [example.output for example in examples])),
    }
    if matches := exact_matches(answers, references):
        scores["exact_match"] = 100 * fmean(matches)
    if by_label:
        for label in filter(None, _labelled(examples)):
            of_label = [score for score, example in zip(rouge, examples, strict=True) if example.label == label]
            scores[f"rouge_l/{label}"] = fmean(of_label)
    return scores


def spread(examples: Sequence[Example], count: int) -> list[Example]:
    """Returns ``count`` evenly spaced examples, in their order but label by label; all if there are not more."""
    ordered = [example for group in _labelled(examples).values() for example in group]
    count = min(count, len(ordered))
    return [ordered[index * len(ordered) // count] for index in range(count)]


def _labelled(examples: Sequence[Example]) -> dict[str, list[Example]]:
    """Returns the examples of each label, labels in the order of their first occurrence."""
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.label, []).append(example)
    return groups
