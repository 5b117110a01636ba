"""Tokenises examples: a prompt, and the response that the loss is taken on.

Prompt and response are tokenised apart, so that a prompt has the same tokens in training and in generation. Their
text is only text: a ``</s>`` in it never becomes the end-of-text token. What does not fit the model's context is
cut: the prompt on its left, behind the token that begins every text, the response on its right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ferret_core.datasets._base import Example
from ferret_core.datasets._chat import chat_ids, require_chat
from ferret_core.datasets._client_data import Encoded, Shard
from ferret_core.datasets._prompt import prompt_of
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import PromptSpec, Template

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TOGETHER = 256
"""Texts that are tokenised in one call."""
EMPTY = Example("", "", "")


def shard_of(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    template: Template = "paper",
) -> Shard:
    """The shard of ``examples``, none longer than ``max_tokens`` (at least 2), responses ended by end-of-text.

    It counts the examples that were cut, be it the prompt or the response.
    Raises ``partition.invalid`` without examples, ``dataset.invalid`` for an output that gives no token at all.
    """
    begin = _begin(tokenizer, template)
    end_id = end_of_text(tokenizer)
    end = [] if end_id is None else [end_id]
    prompts = _prompts(examples, tokenizer, template, begin)
    responses = _ids([example.output for example in examples], tokenizer)
    encoded: list[Encoded] = []
    truncated = 0
    for prompt, response in zip(prompts, responses, strict=True):
        if not response + end:
            message = "an answer gives no token, and the tokenizer has no end-of-text token: leave out empty answers"
            raise FerretError("dataset.invalid", message)
        kept = (response + end)[: max_tokens - 1]
        encoded.append(Encoded(_cut(begin, prompt, max_tokens - len(kept)), kept))
        truncated += len(begin + prompt + response + end) > max_tokens
    return Shard(encoded, pad_id(tokenizer), truncated)


def encode_prompts(
    examples: Sequence[Example],
    tokenizer: PreTrainedTokenizerBase,
    max_tokens: int,
    template: Template = "paper",
) -> list[list[int]]:
    """The prompts alone, each at most ``max_tokens`` (at least 1) long, as in :func:`shard_of`."""
    begin = _begin(tokenizer, template)
    return [_cut(begin, ids, max_tokens) for ids in _prompts(examples, tokenizer, template, begin)]


def longest(prompt: PromptSpec, tokenizer: PreTrainedTokenizerBase, context: int) -> int:
    """The most tokens of a sequence: the model's ``context``, or less where the specification says so.

    Raises ``spec.invalid`` for a limit that the template alone fills, with nothing of an instruction and no answer, and
    for the model's own chat template where it has none.
    """
    if prompt.template == "chat":
        require_chat(tokenizer)
    if prompt.max_tokens is None:
        return context
    begin = _begin(tokenizer, prompt.template)
    taken = len(begin + _prompts([EMPTY], tokenizer, prompt.template, begin)[0])
    if prompt.max_tokens <= taken:
        message = f"the template {prompt.template!r} alone takes {taken} tokens: raise it, or leave it out"
        raise FerretError.of_field("spec.invalid", "prompt.max_tokens", prompt.max_tokens, message)
    return min(context, prompt.max_tokens)


def pad_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """The id to pad with, whatever the tokenizer lacks; padding is masked everywhere, so its value never counts."""
    own = cast("int | None", tokenizer.pad_token_id)
    return own if own is not None else end_of_text(tokenizer) or 0


def end_of_text(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """The id that ends a response, if the tokenizer has one."""
    return cast("int | None", tokenizer.eos_token_id)


def _begin(tokenizer: PreTrainedTokenizerBase, template: Template) -> list[int]:
    """The token that this tokenizer, or the model's own chat template, puts in front of every text, if it does."""
    first = (chat_ids(EMPTY, tokenizer) if template == "chat" else tokenizer("").input_ids)[:1]
    return first if first == [tokenizer.bos_token_id] else []


def _prompts(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, template: Template, begin: list[int]
) -> list[list[int]]:
    """The tokens of each prompt behind ``begin``."""
    if template == "chat":
        return [chat_ids(example, tokenizer)[len(begin) :] for example in examples]
    return _ids([prompt_of(example, template) for example in examples], tokenizer)


def _ids(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """The tokens of each text, a few texts at a time: beside a token's id a tokenizer keeps its text and its place."""
    found: list[list[int]] = []
    for first in range(0, len(texts), TOGETHER):
        part = list(texts[first : first + TOGETHER])
        found += tokenizer(part, add_special_tokens=False, split_special_tokens=True, verbose=False).input_ids
    return found


def _cut(begin: list[int], ids: list[int], room: int) -> list[int]:
    """``begin`` and as many of the last ``ids`` as fit into ``room``."""
    return begin + ids[max(0, len(ids) - room + len(begin)) :]
