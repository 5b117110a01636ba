from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from transformers import GenerationConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ferret_core.algorithms import fedit, fedprompt
from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.datasets.tokenization.tokenize import encode_prompts, shard_of
from ferret_core.evaluation.generate import ends_of_answer, generate
from ferret_core.models.parameters import trainable
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train
from ferret_core.training.loss import response_loss
from tests.ferret_core.memory_limited_device import small

PROMPTS = [[0, 40, 41], [0, 50], [0, 60, 61, 62, 63, 64, 65], [0], [0, 70, 71, 72]]


@pytest.fixture
def wild_model(tiny_model: LlamaForCausalLM) -> LlamaForCausalLM:
    """As drawn, the tied model only repeats its last token; with large layers all that came before counts."""
    with torch.no_grad():
        for parameter in tiny_model.model.layers.parameters():
            parameter.mul_(20)
    return tiny_model


def by_hand(model: Any, tokenizer: PreTrainedTokenizerFast, prompt: list[int], count: int) -> str:
    """A greedy answer by a forward pass for every token, without padding."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
    return str(tokenizer.decode(ids[len(prompt) :], skip_special_tokens=True)).strip()


def test_batches_padded_left_answer_as_single_prompts(
    wild_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    expected = [by_hand(wild_model, tiny_tokenizer, prompt, 6) for prompt in PROMPTS]
    assert len(set(expected)) == len(PROMPTS)
    for size in (1, 2, 5):
        assert generate(wild_model, tiny_tokenizer, PROMPTS, 6, size) == expected


@pytest.mark.parametrize("room", [1, 3])
def test_a_small_device_gives_the_same_answers(
    wild_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast, room: int
) -> None:
    expected = generate(wild_model, tiny_tokenizer, PROMPTS, 6, 5)
    assert generate(small(wild_model, room), tiny_tokenizer, PROMPTS, 6, 5) == expected


@pytest.mark.heavy
def test_an_answer_ends_where_training_and_the_authors_end_one(
    wild_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    prompt = [0, 60, 61, 62, 63, 64, 65]
    (whole,) = generate(wild_model, tiny_tokenizer, [prompt], 6, 1)
    ids = tiny_tokenizer(whole, add_special_tokens=False).input_ids
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.chat_template = "{% for message in messages %}{{ message.content }}<pad>{% endfor %}"
    wild_model.generation_config.eos_token_id = [1, ids[3]]
    assert ends_of_answer(wild_model, tokenizer, "auto") == sorted([1, tokenizer.pad_token_id, ids[3]])
    assert generate(wild_model, tokenizer, [prompt], 6, 1) == [tokenizer.decode(ids[:3])]


def test_a_trained_answer_ends_at_the_end(
    tiny_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    examples = [Example("Say it.", "a", "yes, 你好"), Example("Say it.", "bcd", "no")]
    shard = shard_of(examples, tiny_tokenizer, 128)
    train(tiny_model, shard.batches(2, 0), LocalConfig(learning_rate=0.01, steps=40, accumulation=1))
    prompts = encode_prompts(examples, tiny_tokenizer, 100)
    assert generate(tiny_model, tiny_tokenizer, prompts, 20, 2) == ["yes, 你好", "no"]
    assert generate(tiny_model, tiny_tokenizer, prompts, 1, 2) == ["y", "n"]


def test_shipped_sampling_settings_are_set_aside_and_kept(
    wild_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast, capfd: pytest.CaptureFixture[str]
) -> None:
    plain = generate(wild_model, tiny_tokenizer, PROMPTS, 6, 2)
    shipped = GenerationConfig(do_sample=True, temperature=0.6, top_p=0.9, repetition_penalty=5.0, max_length=4)
    wild_model.generation_config = shipped
    before = torch.get_rng_state()
    assert generate(wild_model.train(), tiny_tokenizer, PROMPTS, 6, 2) == plain
    assert wild_model.generation_config is shipped
    assert wild_model.training
    assert torch.equal(torch.get_rng_state(), before)
    assert capfd.readouterr() == ("", "")


def test_a_tokenizer_without_end_or_padding_generates_to_the_limit(
    wild_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast, capfd: pytest.CaptureFixture[str]
) -> None:
    bare = PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer.backend_tokenizer)
    expected = [by_hand(wild_model, bare, prompt, 5) for prompt in PROMPTS]
    assert generate(wild_model, bare, PROMPTS, 5, 3) == expected
    assert capfd.readouterr() == ("", "")


def test_nothing_asked_is_nothing_answered(
    tiny_model: LlamaForCausalLM, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    assert generate(tiny_model, tiny_tokenizer, [], 5, 3) == []


LONG, SHORT = Encoded([0, 5, 6], [7, 8, 9, 1]), Encoded([0, 9], [4, 1])
LONGER = [[0, 17, 40, 5, 99, 61, 30], [0, 8], [0, 120, 77, 11]]


@pytest.fixture
def prompted(tiny_model: Any) -> Any:
    """A soft prompt of 5 tokens, in a model whose attention is sharp enough for it, and for places, to count."""
    with torch.no_grad():
        for parameter in tiny_model.model.layers.parameters():
            parameter *= 15
    return fedprompt.Algorithm(fedprompt.Config(virtual_tokens=5)).prepare(tiny_model, 3)


def test_the_loss_is_taken_behind_the_prompt(prompted: Any) -> None:
    nll, tokens = response_loss(prompted, next(ClientData([LONG, SHORT], pad_id=2).ordered(2)))
    expected = 0.0
    for prompt, response in (LONG, SHORT):
        embeddings = prompted.get_input_embeddings()(torch.tensor([[*prompt, *response]]))
        whole = torch.cat([prompted.get_prompt(1), embeddings], dim=1)
        logs = prompted.get_base_model()(inputs_embeds=whole).logits[0].log_softmax(-1)
        expected -= sum(logs[5 + len(prompt) - 1 + i, token].item() for i, token in enumerate(response))
    assert tokens == 6
    assert nll.item() == pytest.approx(expected, rel=1e-5)


def test_answers_follow_the_prompt_and_not_their_neighbours(
    prompted: Any, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    together = generate(prompted, tiny_tokenizer, LONGER, 6, batch_size=3)
    assert together == [by_hand(prompted, tiny_tokenizer, prompt, 6) for prompt in LONGER]
    assert together == generate(prompted, tiny_tokenizer, LONGER, 6, batch_size=1)
    assert together != generate(prompted.get_base_model(), tiny_tokenizer, LONGER, 6, batch_size=3)


def test_answers_come_from_the_adapted_layers(tiny_model: Any, tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    model: Any = fedit.Algorithm(fedit.Config(targets=["down_proj"])).prepare(tiny_model, 3)
    before = generate(model, tiny_tokenizer, LONGER, 6, batch_size=3)
    with torch.no_grad():
        for parameter in trainable(model).values():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter).sin())
    after = generate(model, tiny_tokenizer, LONGER, 6, batch_size=3)
    assert after == [by_hand(model, tiny_tokenizer, prompt, 6) for prompt in LONGER]
    assert after != before
    assert tiny_model.generation_config.eos_token_id == tiny_tokenizer.eos_token_id, "and its settings are put back"
