"""``prompt.template = "chat"``: training in the words of the model's own chat template."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, get_args

import pytest
from transformers import PreTrainedTokenizerFast

from ferret_core.datasets.base import Example, Turn
from ferret_core.datasets.tokenization.chat_template import fitting
from ferret_core.datasets.tokenization.tokenize import encode_prompts, longest, resolve_template, shard_of
from ferret_core.protocol.spec import PromptSpec, Worded
from tests.ferret_core.replicas import SpecFactory, replica_of
from tests.refusals import refused

pytestmark = pytest.mark.heavy
"""A process renders each template."""

CHAT = PromptSpec(template="chat")
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)
EXAMPLE = Example("Repeat.", "red </s> fish", "red fish")


@pytest.fixture
def chatting(tiny_tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    tokenizer = copy.deepcopy(tiny_tokenizer)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def test_the_prompt_is_the_users_message_behind_the_template(chatting: PreTrainedTokenizerFast) -> None:
    ((prompt, response),) = shard_of([EXAMPLE], chatting, 1000, "chat").examples
    assert chatting.decode(prompt) == "<s>[user] Repeat.\n\nred </s> fish\n[assistant] "
    assert chatting.eos_token_id not in prompt, "special tokens in an example are text"
    assert chatting.decode(response) == "red fish</s>"
    assert encode_prompts([EXAMPLE], chatting, 1000, "chat") == [prompt]
    plain = EXAMPLE._replace(input="red fish")
    said = [{"role": "user", "content": "Repeat.\n\nred fish"}]
    own: Any = chatting.apply_chat_template(said, add_generation_prompt=True)
    assert encode_prompts([plain], chatting, 1000, "chat") == [own["input_ids"]]


GEMMA = "{% for message in messages %}{{ '[' + message.role + ']' + message.content }}<end_of_turn>\n{% endfor %}"
LLAMA2 = "{% for message in messages %}{{ message.content }} {{ eos_token }}{% endfor %}"
GLM = (
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"
    "{% if add_generation_prompt %}<end_of_turn>{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "end"), [(GEMMA, "<end_of_turn>"), (LLAMA2, "</s>"), (TEMPLATE, "</s>"), (GLM, "</s>")]
)
def test_a_response_ends_with_the_templates_own_token(
    chatting: PreTrainedTokenizerFast, template: str, end: str
) -> None:
    chatting.add_tokens(["<end_of_turn>"], special_tokens=True)
    chatting.chat_template = template
    ((_, response),) = shard_of([EXAMPLE], chatting, 1000, "chat").examples
    assert chatting.decode(response) == f"red fish{end}"
    ((_, worded),) = shard_of([EXAMPLE], chatting, 1000, "paper").examples
    assert chatting.decode(worded) == "red fish</s>"


def test_auto_is_the_models_own_template(
    tiny_tokenizer: PreTrainedTokenizerFast, chatting: PreTrainedTokenizerFast
) -> None:
    assert resolve_template("auto", tiny_tokenizer) == "paper"
    assert resolve_template("auto", chatting) == "chat"
    assert resolve_template("dolly", chatting) == "dolly"
    for tokenizer, template in ((tiny_tokenizer, "paper"), (chatting, "chat")):
        assert shard_of([EXAMPLE], tokenizer, 1000, "auto") == shard_of([EXAMPLE], tokenizer, 1000, template)
        assert encode_prompts([EXAMPLE], tokenizer, 20, "auto") == encode_prompts([EXAMPLE], tokenizer, 20, template)


@pytest.mark.parametrize("wording", get_args(Worded))
def test_auto_continues_in_the_prompt_that_an_exported_model_was_tuned_with(
    tiny_tokenizer: PreTrainedTokenizerFast, wording: Worded
) -> None:
    exported = copy.deepcopy(tiny_tokenizer)
    exported.chat_template = fitting(tiny_tokenizer, wording)
    assert resolve_template("auto", exported) == wording


def test_the_day_does_not_change_a_prompt(chatting: PreTrainedTokenizerFast) -> None:
    chatting.chat_template = "Today is {{ strftime_now('%d %b %Y') }}.\n" + TEMPLATE
    (prompt,) = encode_prompts([EXAMPLE], chatting, 1000, "chat")
    assert chatting.decode(prompt).startswith("Today is 26 Jul 2024.\n")


def test_a_long_prompt_loses_its_left_behind_the_first_token(chatting: PreTrainedTokenizerFast) -> None:
    (whole,), (cut,) = (encode_prompts([EXAMPLE], chatting, size, "chat") for size in (1000, 12))
    assert cut == [whole[0], *whole[-11:]]


def test_a_model_without_a_chat_template_is_refused(toy_spec: SpecFactory, tiny_model_dir: Path) -> None:
    with refused("spec.invalid", "the model has no chat template; use paper", field="prompt.template"):
        _ = replica_of(toy_spec(prompt={"template": "chat"})).context


@pytest.mark.parametrize(
    ("content", "found"), [("content", ' \n Sing 😀 \\ "</s>" \n'), ("content | trim", 'Sing 😀 \\ "</s>"')]
)
def test_a_question_has_the_tokens_of_the_template_itself(
    chatting: PreTrainedTokenizerFast, content: str, found: str
) -> None:
    chatting.chat_template = (
        "{{ bos_token }}😀'{{ '\\\\' }}\"\n{% for message in messages %}{{ message." + content + " }}{% endfor %}:"
    )
    example = Example(' \n Sing 😀 \\ "</s>" \n', "", "")
    (ids,) = encode_prompts([example], chatting, 1000, "chat")
    said = [{"role": "user", "content": example.instruction}]
    own: Any = chatting.apply_chat_template(said, add_generation_prompt=True, sanitize_control_tokens=True)
    assert ids == own["input_ids"]
    assert chatting.decode(ids) == f"<s>😀'\\\"\n{found}:"


@pytest.mark.parametrize(
    "broken", ["{{ raise_exception('tools only') }}", "{% for %}", "no question", "{{ messages[0].content * 2 }}"]
)
def test_a_chat_template_that_takes_no_question_is_refused(chatting: PreTrainedTokenizerFast, broken: str) -> None:
    chatting.chat_template = broken
    with refused("spec.invalid", "does not take a question"):
        longest(CHAT, chatting, 128)


SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ 'system\nBe helpful' }}"
    "{% endif %}{{ '[' + message['role'] + ']\n' + message['content'] + '</s>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '[assistant]\n' }}{% endif %}"
)
TRIMMING = (
    "{% for message in messages %}{% if loop.last and message.role == 'user' %}[ask] {% endif %}"
    "{{ message.content | trim if message.role == 'user' else message.content }}\n{% endfor %}"
)
CONVERSATIONS = [
    EXAMPLE,
    Example(" Sing. ", "", "La", turns=(Turn("system", " Be </s> brief. "),)),
    Example("Louder.", "", "LA", turns=(Turn("user", " Sing. "), Turn("assistant", " La 'la' {{ 7 }} "))),
]


@pytest.mark.parametrize("template", [SMOLLM2, TRIMMING])
def test_a_conversation_has_the_tokens_of_the_template_itself(chatting: PreTrainedTokenizerFast, template: str) -> None:
    chatting.chat_template = template
    for example, ids in zip(CONVERSATIONS, encode_prompts(CONVERSATIONS, chatting, 1000, "chat"), strict=True):
        said = [{"role": turn.role, "content": turn.content} for turn in example.turns]
        said.append({"role": "user", "content": "\n\n".join(filter(None, [example.instruction, example.input]))})
        own: Any = chatting.apply_chat_template(said, add_generation_prompt=True, sanitize_control_tokens=True)
        assert ids == own["input_ids"]


def test_a_conversation_that_the_template_rejects_is_named(chatting: PreTrainedTokenizerFast) -> None:
    chatting.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE
    )
    with refused("dataset.invalid", "example 2 is a conversation of system, user"):
        shard_of(CONVERSATIONS, chatting, 1000, "chat")


def test_a_worded_prompt_takes_a_system_message_as_input_and_no_further_turns(
    tiny_tokenizer: PreTrainedTokenizerFast,
) -> None:
    plain = Example(" Sing. ", " Be </s> brief. ", "La")
    assert shard_of(CONVERSATIONS[1:2], tiny_tokenizer, 1000) == shard_of([plain], tiny_tokenizer, 1000)
    with refused("dataset.invalid", "example 3 is a conversation of 4 messages", field="prompt.template"):
        encode_prompts(CONVERSATIONS, tiny_tokenizer, 1000, "auto")
