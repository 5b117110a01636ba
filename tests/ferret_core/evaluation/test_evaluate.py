from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.tokenize import shard_of
from ferret_core.evaluation.evaluate import evaluate, total_loss
from ferret_core.protocol.spec import EvaluationSpec
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train
from tests.refusals import refused

EXAMPLES = [Example("Double it.", str(i), str(2 * i)) for i in range(10)]
SPEC = EvaluationSpec(examples=10, generate_examples=4, max_new_tokens=4, batch_size=3)
Measured = Callable[..., dict[str, float]]


@pytest.fixture
def measured(tiny_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast) -> Measured:
    """``measured(examples, spec)``: the figures of the tiny model."""
    return partial(evaluate, tiny_model, tiny_tokenizer)


def test_the_same_model_gives_the_same_figures(
    measured: Measured, tiny_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    first = measured(EXAMPLES, SPEC)
    assert set(first) == {"eval_loss", "rouge_l", "rouge_l_paper"}
    assert first["eval_loss"] == total_loss(tiny_model, shard_of(EXAMPLES, tiny_tokenizer, 128), 3).mean
    assert measured(EXAMPLES, SPEC) == first


def test_training_shows_in_both_figures(
    measured: Measured, tiny_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    examples = [Example("Answer.", "", "4 2"), Example("Answer.", "", "4 2")]
    before = measured(examples, SPEC)
    shard = shard_of(examples, tiny_tokenizer, 128)
    train(tiny_model, shard.batches(2, 0), LocalConfig(learning_rate=0.01, steps=80, accumulation=1))
    after = measured(examples, SPEC.model_copy(update={"max_new_tokens": 16}))
    assert after["eval_loss"] < before["eval_loss"] / 5
    assert (before["rouge_l"], after["rouge_l"]) == (0, 100)


def test_without_generation_there_is_no_rouge(measured: Measured) -> None:
    spec = EvaluationSpec(generate_examples=0, max_new_tokens=4096)
    assert set(measured(EXAMPLES, spec)) == {"eval_loss"}


def test_a_part_is_taken_from_everywhere(measured: Measured) -> None:
    spec = EvaluationSpec(examples=4, generate_examples=0)
    spread = [EXAMPLES[index] for index in (0, 2, 5, 7)]
    assert measured(EXAMPLES, spec) == measured(spread, spec)


def test_every_label_is_covered_whatever_the_order(measured: Measured) -> None:
    """Every second example would be of one label: the order of the file must not decide what is measured."""
    mixed = [example._replace(label="ab"[index % 2]) for index, example in enumerate(EXAMPLES)]
    spec = EvaluationSpec(examples=5, generate_examples=3, max_new_tokens=4, by_label=True)
    found = measured(mixed, spec)
    assert {"eval_loss/a", "eval_loss/b", "rouge_l/a", "rouge_l/b"} <= set(found)


def test_the_labels_figures_add_up_to_the_whole(measured: Measured) -> None:
    labelled = [example._replace(label="small" if len(example.output) == 1 else "large") for example in EXAMPLES]
    found = measured(labelled, SPEC.model_copy(update={"by_label": True, "generate_examples": 10}))
    whole = measured(labelled, SPEC.model_copy(update={"generate_examples": 10}))
    assert found["eval_loss"] == pytest.approx(whole["eval_loss"], rel=1e-6)
    small, large = labelled[:5], labelled[5:]
    for label, part in (("small", small), ("large", large)):
        assert found[f"eval_loss/{label}"] == measured(part, SPEC)["eval_loss"]
    assert found["rouge_l"] == pytest.approx((found["rouge_l/small"] + found["rouge_l/large"]) / 2)
    assert not any("/" in name for name in whole)


def test_examples_without_a_label_have_no_figures_of_their_own(measured: Measured) -> None:
    found = measured(EXAMPLES, SPEC.model_copy(update={"by_label": True}))
    assert set(found) == {"eval_loss", "rouge_l", "rouge_l_paper"}


def test_final_answers_are_compared_where_there_are_any(
    measured: Measured, tiny_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    examples = [Example("Add.", "", "#### 42", accepted=("4 2",))] * 2
    shard = shard_of(examples, tiny_tokenizer, 128)
    train(tiny_model, shard.batches(2, 0), LocalConfig(learning_rate=0.01, steps=80, accumulation=1))
    found = measured(examples, SPEC.model_copy(update={"max_new_tokens": 16}))
    assert (found["exact_match"], found["rouge_l"], found["rouge_l_paper"]) == (100, 100, 100)


def test_a_prompt_that_leaves_no_room_is_cut(measured: Measured) -> None:
    examples = [Example("long " * 100, "", "a"), Example("b", "", "c")]
    spec = SPEC.model_copy(update={"max_new_tokens": 120})
    assert measured(examples, spec)["eval_loss"] > 0


def test_more_new_tokens_than_context_is_refused(measured: Measured) -> None:
    with refused("spec.invalid", "evaluation.max_new_tokens = 128", "128"):
        measured(EXAMPLES, SPEC.model_copy(update={"max_new_tokens": 128}))


def test_every_batch_is_announced_and_may_be_the_last(measured: Measured, tiny_model: LlamaForCausalLM) -> None:
    seen: list[int] = []

    def count() -> None:
        seen.append(len(seen))
        if len(seen) == limit:
            raise KeyboardInterrupt

    limit = 1000
    measured(EXAMPLES, SPEC, count)
    assert len(seen) == 4 + 2  # 10 examples and 4 answers, 3 at once
    for limit in (1, 5):
        seen.clear()
        with pytest.raises(KeyboardInterrupt):
            measured(EXAMPLES, SPEC, count)
        assert len(seen) == limit
    assert not tiny_model.training
