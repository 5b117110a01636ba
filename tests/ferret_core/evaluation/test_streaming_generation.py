"""Answers that are told while they come."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from ferret_core import catalog
from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.chat_template import fitting
from ferret_core.datasets.tokenization.tokenize import encode_prompts
from ferret_core.evaluation.generate import generate
from ferret_core.evaluation.streaming_generation import (
    SamplingOptions,
    StopWatcher,
    answer,
    load_checkpoint,
    load_exported,
    question_ids,
)
from ferret_core.models.load import LoadedModel, load
from ferret_core.models.save import save_base
from ferret_core.protocol.spec import ModelSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.replica import Replica
from ferret_core.sample import model_path
from tests.ferret_core.replicas import SpecFactory, replica_of
from tests.refusals import refused

EXAMPLE = Example("Repeat the sentence.", "Anna has a red kite.", "")


@pytest.fixture
def sample() -> LoadedModel:
    """The demo's model, with the chat template of its training."""
    loaded = load(ModelSpec(source=str(model_path())))
    loaded.tokenizer.chat_template = fitting(loaded.tokenizer, "paper")
    return loaded


def test_the_parts_together_are_what_evaluation_generates(sample: LoadedModel) -> None:
    model, tokenizer, _ = sample
    prompt = question_ids(tokenizer, EXAMPLE.instruction, EXAMPLE.input)
    assert [prompt] == encode_prompts([EXAMPLE], tokenizer, 1000)
    parts: list[str] = []
    said = answer(model, tokenizer, prompt, 20, parts.append)
    assert [said.text] == generate(model, tokenizer, [prompt], 20, 1)
    assert "".join(parts) == said.text
    assert len(parts) > 1


def test_a_character_of_several_tokens_is_told_whole(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    parts: list[str] = []
    heard = StopWatcher(tiny_tokenizer, parts.append)
    heard.put(torch.tensor([[0, 5]]))
    for token in tiny_tokenizer(" a 你 b", add_special_tokens=False).input_ids:
        heard.put(torch.tensor([token]))
    heard.end()
    assert parts == ["a", " 你", " b"]


def test_a_question_that_fills_the_context_is_refused(
    tiny_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    with refused("request.invalid", "128"):
        answer(tiny_model, tiny_tokenizer, [5] * 128, 10)
    assert answer(tiny_model, tiny_tokenizer, [5] * 127, 10)[1:] == (1, "context")


def test_an_answer_says_why_it_ended(sample: LoadedModel) -> None:
    model, tokenizer, _ = sample
    prompt = question_ids(tokenizer, "Count the words.", "bell school kite")
    counted: list[None] = []
    whole = answer(model, tokenizer, prompt, 40, on_token=lambda: counted.append(None))
    assert (whole.ended, len(counted)) == ("model", whole.tokens)
    assert answer(model, tokenizer, prompt, whole.tokens - 1)[1:] == (whole.tokens - 1, "length")


def test_a_seed_draws_the_same_answer_again_and_leaves_the_random_numbers_of_others(sample: LoadedModel) -> None:
    model, tokenizer, _ = sample
    prompt = question_ids(tokenizer, EXAMPLE.instruction, EXAMPLE.input)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    texts = [answer(model, tokenizer, prompt, 20, sampling=SamplingOptions(1.5, seed)).text for seed in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1]
    assert torch.equal(torch.rand(2), expected)


def test_an_interrupted_answer_leaves_the_model_as_it_was(
    tiny_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    def stop(text: str) -> None:
        raise KeyboardInterrupt

    before = tiny_model.generation_config
    with pytest.raises(KeyboardInterrupt):
        answer(tiny_model, tiny_tokenizer, [0, 40, 41], 10, stop)
    assert tiny_model.generation_config is before
    assert answer(tiny_model, tiny_tokenizer, [0, 40, 41], 10)


@pytest.mark.parametrize("algorithm", ["ferret", "fedit", "fedprompt"])
def test_exported_models_and_adapters_are_loaded(toy_spec: SpecFactory, tmp_path: Path, algorithm: str) -> None:
    replica = replica_of(toy_spec(algorithm))
    checkpoint.write(replica, "exp_0000000000007e57", tmp_path)
    with refused("model.invalid", "has no chat template"):
        load_exported(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(fitting(replica.tokenizer, "paper") or "")
    model, tokenizer, _ = load_exported(tmp_path)
    prompt = question_ids(tokenizer, "Repeat.", "fish")
    assert [answer(model, tokenizer, prompt, 6).text] == generate(replica.model, replica.tokenizer, [prompt], 6, 1)


@pytest.mark.parametrize("algorithm", ["ferret", "fedit"])
def test_a_stored_checkpoint_is_asked_as_its_export_would_be(
    toy_spec: SpecFactory, tmp_path: Path, algorithm: str
) -> None:
    spec = catalog.resolve(toy_spec(algorithm)).spec
    base, tuned = tmp_path / "base", tmp_path / "tuned"
    for folder in (base, tuned):
        folder.mkdir()
    save_base(load(spec.model), base)
    replica = Replica.load(spec)
    checkpoint.write(replica, "exp_0000000000007e57", tuned)
    model, tokenizer, _ = load_checkpoint(tuned, base, "paper")
    assert tokenizer.chat_template == fitting(replica.tokenizer, "paper")
    prompt = question_ids(tokenizer, "Repeat.", "fish")
    assert [answer(model, tokenizer, prompt, 6).text] == generate(replica.model, replica.tokenizer, [prompt], 6, 1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_takes_no_more_memory_than_it_was_trained_in(dtype: str, toy_spec: SpecFactory, tmp_path: Path) -> None:
    replica = Replica.load(catalog.resolve(toy_spec(model={"source": str(model_path()), "dtype": dtype})).spec)
    checkpoint.write(replica, "exp_0000000000007e57", tmp_path)
    model, tokenizer, _ = load_checkpoint(tmp_path, tmp_path, "paper")
    assert {weight.dtype for weight in model.parameters()} == {getattr(torch, dtype)}
    assert answer(model, tokenizer, question_ids(tokenizer, EXAMPLE.instruction, EXAMPLE.input), 5).tokens > 0


def test_a_checkpoint_that_no_template_fits_is_refused(toy_spec: SpecFactory, tmp_path: Path) -> None:
    save_base(load(toy_spec().model), tmp_path)
    with refused("model.invalid", "no chat template gives its tokenizer"):
        load_checkpoint(tmp_path, tmp_path, "chat")


def test_a_models_own_template_gets_one_message(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    tiny_tokenizer.chat_template = "{% for message in messages %}({{ message['content'] }}){% endfor %}"
    try:
        assert tiny_tokenizer.decode(question_ids(tiny_tokenizer, "Repeat.", "fish")) == "(Repeat.\n\nfish)"
        tiny_tokenizer.chat_template = "{{ raise_exception('no') }}"
        with refused("spec.invalid", "does not take a question"):
            question_ids(tiny_tokenizer, "Repeat.")
    finally:
        tiny_tokenizer.chat_template = None
