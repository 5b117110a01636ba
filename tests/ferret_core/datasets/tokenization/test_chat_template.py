"""The chat template that exported models carry: by it a tokenizer gives the very tokens of training."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from jinja2 import TemplateError
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.chat import rendered_ids
from ferret_core.datasets.tokenization.chat_template import fitting, messages_of
from ferret_core.datasets.tokenization.prompt import prompt_of
from ferret_core.datasets.tokenization.prompt_jinja import jinja, wording_of
from ferret_core.datasets.tokenization.tokenize import encode_prompts
from ferret_core.protocol.spec import Worded
from ferret_core.sample import model_path

TEMPLATES: tuple[Worded, ...] = get_args(Worded)
EXAMPLES = [
    Example('Say "yes" \\ {{ no }}.\nTwice.', "", ""),
    Example("Translate.", "Guten Tag,\n\n你好", ""),
    Example("Keep  </s>  this.", "<s>", ""),
]


def sentencepiece() -> PreTrainedTokenizerFast:
    """As Llama 2's: a text's first word gets a blank before it, but not one that follows ``<s>``."""
    letters = sorted({letter for text in TEMPLATES for letter in jinja(text)} | set("▁Gutenag你好<>/s"))
    vocabulary = {token: number for number, token in enumerate(["<unk>", "<s>", "</s>", *letters])}
    backend = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    backend.decoder = decoders.Metaspace(prepend_scheme="first")
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    backend.add_special_tokens([AddedToken("<s>"), AddedToken("</s>")])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


@pytest.fixture(params=["byte-level with <s>", "the demo's", "SentencePiece's blank"])
def tokenizer(request: pytest.FixtureRequest, tiny_tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    match request.param:
        case "the demo's":
            return AutoTokenizer.from_pretrained(model_path())  # pyrefly: ignore[bad-return]
        case "SentencePiece's blank":
            return sentencepiece()
        case _:
            return tiny_tokenizer


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_question_has_the_tokens_of_training(tokenizer: PreTrainedTokenizerFast, template: Worded) -> None:
    text = fitting(tokenizer, template)
    assert text is not None
    assert wording_of(text) == template
    asked = [rendered_ids(messages_of(example.instruction, example.input), tokenizer, text) for example in EXAMPLES]
    assert asked[:2] == encode_prompts(EXAMPLES[:2], tokenizer, 10_000, template)
    end = tokenizer.eos_token_id
    assert end not in asked[2], "special tokens in a question are text"


def test_as_transformers_is_used_without_any_option_of_ours(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    example = Example("Translate.", "Guten Tag", "")
    messages = [{"role": "system", "content": "Guten Tag"}, {"role": "user", "content": "Translate."}]
    text = fitting(tiny_tokenizer, "paper")
    given: Any = tiny_tokenizer.apply_chat_template(messages, chat_template=text, add_generation_prompt=True)
    assert given["input_ids"] == encode_prompts([example], tiny_tokenizer, 1000)[0]
    told = tiny_tokenizer.apply_chat_template(messages, chat_template=text, add_generation_prompt=True, tokenize=False)
    assert told == "<s>" + prompt_of(example)


def test_an_answer_follows_the_colon_and_is_ended(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    messages = [*messages_of("Sing."), {"role": "assistant", "content": "La"}]
    text = fitting(tiny_tokenizer, "alpaca")
    told = tiny_tokenizer.apply_chat_template(messages, chat_template=text, tokenize=False)
    assert told == f"<s>{prompt_of(Example('Sing.', '', ''), 'alpaca')}La</s>"


def test_a_conversation_is_refused_with_what_to_do(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    text = fitting(tiny_tokenizer, "paper")
    with pytest.raises(TemplateError, match="give one user message"):
        rendered_ids([*messages_of("Sing."), *messages_of("Dance.")], tiny_tokenizer, text)
