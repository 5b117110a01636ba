from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization import tokenize
from ferret_core.datasets.tokenization.prompt import prompt_of
from ferret_core.datasets.tokenization.tokenize import encode_prompts, pad_id, shard_of
from tests.refusals import refused

BEGIN, END = 0, 1
EXAMPLE = Example("Translate.", "Guten Tag", "你好, hello")


@pytest.fixture
def bare() -> PreTrainedTokenizerFast:
    """Words only: no beginning, no end, no padding, and unknown words vanish."""
    vocabulary = {"Below": 0, "is": 1, "an": 2, "yes": 3}
    backend = Tokenizer(WordLevel(vocabulary, unk_token="an"))
    backend.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=backend)


def test_prompt_begins_the_text_and_response_ends_it(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    ((prompt, response),) = shard_of([EXAMPLE], tiny_tokenizer, 1000).examples
    assert prompt[0] == BEGIN
    assert response[-1] == END
    assert tiny_tokenizer.decode(prompt[1:]) == prompt_of(EXAMPLE)
    assert tiny_tokenizer.decode(response[:-1]) == EXAMPLE.output
    assert encode_prompts([EXAMPLE], tiny_tokenizer, 1000) == [prompt], "a prompt alone has the tokens of training"
    assert shard_of([Example("a", "", "")], tiny_tokenizer, 1000).examples[0].response == [END]


def test_special_tokens_in_a_users_text_stay_text(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    (encoded,) = shard_of([Example("a <s>b</s>", "", "x</s>y")], tiny_tokenizer, 1000).examples
    assert encoded.prompt.count(BEGIN) == 1
    assert END not in encoded.prompt
    assert encoded.response.index(END) == len(encoded.response) - 1


def test_a_long_prompt_loses_its_left_and_keeps_the_response(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    whole = shard_of([EXAMPLE], tiny_tokenizer, 1000).examples[0]
    cut = shard_of([EXAMPLE], tiny_tokenizer, 30).examples[0]
    assert cut.response == whole.response
    assert len(cut.prompt) + len(cut.response) == 30
    assert cut.prompt == [BEGIN, *whole.prompt[-len(cut.prompt) + 1 :]]


def test_a_long_response_loses_its_right_and_its_end(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    whole = shard_of([EXAMPLE], tiny_tokenizer, 1000).examples[0]
    cut = shard_of([EXAMPLE], tiny_tokenizer, 5).examples[0]
    assert cut.prompt == [BEGIN]
    assert cut.response == whole.response[:4]


def test_examples_that_were_cut_are_counted(tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    short, long_answer = Example("a", "", "b"), Example("a", "", "word " * 200)
    lengths = [sum(map(len, shard_of([example], tiny_tokenizer, 1000).examples[0])) for example in (short, EXAMPLE)]
    assert lengths[0] < lengths[1]
    examples = [short, EXAMPLE, long_answer]
    limits = (2000, lengths[1], lengths[1] - 1, lengths[0] - 1)
    assert [shard_of(examples, tiny_tokenizer, limit).truncated for limit in limits] == [0, 1, 2, 3]


def test_many_texts_are_tokenised_a_few_at_a_time(
    tiny_tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = [Example("Count.", str(i), f"{i} and " * i + "end") for i in range(5)]
    at_once = shard_of(examples, tiny_tokenizer, 1000).examples
    together: list[int] = []
    tokenise = type(tiny_tokenizer).__call__

    def counted(tokenizer: Any, text: str | list[str], **options: Any) -> Any:
        if isinstance(text, list):
            together.append(len(text))
        return tokenise(tokenizer, text, **options)

    monkeypatch.setattr(type(tiny_tokenizer), "__call__", counted)
    monkeypatch.setattr(tokenize, "TOGETHER", 2)
    assert shard_of(examples, tiny_tokenizer, 1000).examples == at_once
    assert together == [2, 2, 1] * 2


@pytest.mark.parametrize("room", [1, 2, 7])
def test_a_generation_prompt_fits_its_room(tiny_tokenizer: PreTrainedTokenizerFast, room: int) -> None:
    (whole,), (cut,) = (encode_prompts([EXAMPLE], tiny_tokenizer, size) for size in (1000, room))
    assert cut == [BEGIN, *whole[len(whole) - room + 1 :]]


def test_a_tokenizer_without_special_tokens_works(bare: PreTrainedTokenizerFast) -> None:
    shard = shard_of([Example("", "", "yes is")], bare, 64)
    assert shard.examples[0].prompt[:3] == [0, 1, 2]
    assert shard.examples[0].response == [3, 1]
    assert shard.pad_id == pad_id(bare) == 0
    assert shard_of([Example("", "", "yes is")], bare, 2).examples[0] == ([2], [3])


def test_padding_falls_back_to_end_of_text(bare: PreTrainedTokenizerFast) -> None:
    bare.eos_token = "yes"
    assert pad_id(bare) == 3


def test_an_output_without_any_token_is_named(bare: PreTrainedTokenizerFast) -> None:
    with refused("dataset.invalid", "an answer gives no token"):
        shard_of([Example("a", "", "")], bare, 64)


def test_a_saved_truncation_setting_is_not_obeyed(
    tiny_model_dir: Path, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    from transformers import AutoTokenizer

    other = AutoTokenizer.from_pretrained(tiny_model_dir)
    other.backend_tokenizer.enable_truncation(8)
    other.backend_tokenizer.enable_padding(length=200)
    assert shard_of([EXAMPLE], other, 1000).examples == shard_of([EXAMPLE], tiny_tokenizer, 1000).examples
