"""``prompt.template = "chat"``: training in the words of the model's own chat template."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.tokenize import encode_prompts, longest, shard_of
from ferret_core.protocol.spec import PromptSpec
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
