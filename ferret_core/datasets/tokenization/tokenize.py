"""Tokenisation of examples: a prompt, and the response with the loss.

Prompt and response are tokenised separately, so that a prompt has the same tokens in training and in generation. Their
text is never interpreted: a ``</s>`` in it does not become the end-of-text token. Sequences longer than the model's
context are cut: the prompt on its left, after the token that begins every text, the response on its right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.chat import answer_end, chat_ids, require_chat
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.datasets.tokenization.prompt import prompt_of
from ferret_core.datasets.tokenization.prompt_jinja import wording_of
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import PromptSpec, Rendered, Template, Worded

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TOGETHER = 256
"""Texts per call of the tokenizer."""
EMPTY = Example("", "", "")


def resolve_template(template: Template, tokenizer: PreTrainedTokenizerBase) -> Rendered:
    """Returns ``template``, or for ``auto``: ``chat`` if the model has a chat template, else ``paper``.

    Ferret exports a worded prompt as the chat template; for such a model ``auto`` is that wording. The chat template
    is compared, not run. The model's digest covers the tokenizer's files, so every process chooses the same.
    """
    if template != "auto":
        return template
    return (wording_of(tokenizer.chat_template) or "chat") if tokenizer.chat_template else "paper"


def shard_of(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int, template: Template = "paper"
) -> ClientData:
    """Tokenises ``examples`` to at most ``max_tokens`` (at least 2) each, with :func:`response_end` after responses.

    It counts the examples with a cut prompt or response. Raises ``partition.invalid`` without examples,
    ``dataset.invalid`` for an output without any token.
    """
    rendered = resolve_template(template, tokenizer)
    begin = _begin(tokenizer, rendered)
    end_id = response_end(tokenizer, rendered)
    end = [] if end_id is None else [end_id]
    prompts = _prompts(examples, tokenizer, rendered, begin)
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
    return ClientData(encoded, pad_id(tokenizer), truncated)


def encode_prompts(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, max_tokens: int, template: Template = "paper"
) -> list[list[int]]:
    """Tokenises the prompts alone, each to at most ``max_tokens`` (at least 1), like :func:`shard_of`."""
    rendered = resolve_template(template, tokenizer)
    begin = _begin(tokenizer, rendered)
    return [_cut(begin, ids, max_tokens) for ids in _prompts(examples, tokenizer, rendered, begin)]


def longest(prompt: PromptSpec, tokenizer: PreTrainedTokenizerBase, context: int) -> int:
    """Returns the maximum number of tokens in a sequence: the smaller of the specification's and the model's
    ``context``.

    Raises ``spec.invalid`` if the template alone fills the limit, without any instruction or answer, and for a missing
    chat template.
    """
    template = resolve_template(prompt.template, tokenizer)
    if template == "chat":
        require_chat(tokenizer)
    if prompt.max_tokens is None:
        return context
    begin = _begin(tokenizer, template)
    taken = len(begin + _prompts([EMPTY], tokenizer, template, begin)[0])
    if prompt.max_tokens <= taken:
        message = f"the template {template!r} alone takes {taken} tokens: raise it"
        raise FerretError.of_field("spec.invalid", "prompt.max_tokens", prompt.max_tokens, message)
    return min(context, prompt.max_tokens)


def pad_id(tokenizer: PreTrainedTokenizerBase) -> int:
    """Returns the id to pad with; padding is always masked, so its value never matters."""
    own = cast("int | None", tokenizer.pad_token_id)
    return own if own is not None else _end_of_text(tokenizer) or 0


def response_end(tokenizer: PreTrainedTokenizerBase, template: Template) -> int | None:
    """Returns the id that ends a response: a chat template's end of an answer, if it has one, else end-of-text.

    Returns None if the tokenizer has no such token either.
    """
    chat = resolve_template(template, tokenizer) == "chat"
    end = answer_end(tokenizer) if chat else None
    return _end_of_text(tokenizer) if end is None else end


def _end_of_text(tokenizer: PreTrainedTokenizerBase) -> int | None:
    return cast("int | None", tokenizer.eos_token_id)


def _begin(tokenizer: PreTrainedTokenizerBase, template: Rendered) -> list[int]:
    """Returns the token, if any, that this tokenizer or the model's own chat template puts before every text."""
    first = (chat_ids([EMPTY], tokenizer)[0] if template == "chat" else tokenizer("").input_ids)[:1]
    return first if first == [tokenizer.bos_token_id] else []


def _prompts(
    examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, template: Rendered, begin: list[int]
) -> list[list[int]]:
    """Returns the tokens of each prompt after ``begin``."""
    if template == "chat":
        return [ids[len(begin) :] for ids in chat_ids(examples, tokenizer)]
    return _ids([prompt_of(_one_question(*each, template), template) for each in enumerate(examples, 1)], tokenizer)


def _one_question(number: int, example: Example, template: Worded) -> Example:
    """Returns the example with a system message as its input; raises ``dataset.invalid`` for several turns."""
    if not example.turns:
        return example
    if [turn.role for turn in example.turns] != ["system"]:
        message = f"renders one question, and example {number} is a conversation of {len(example.turns) + 2} messages"
        message = f"{message}: choose chat and a model with a chat template, or give single questions"
        raise FerretError.of_field("dataset.invalid", "prompt.template", template, message)
    return example._replace(input=example.turns[0].content, turns=())


def _ids(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Returns the tokens of each text; in groups, because a tokenizer also stores text and place of each token."""
    found: list[list[int]] = []
    for first in range(0, len(texts), TOGETHER):
        part = list(texts[first : first + TOGETHER])
        found += tokenizer(part, add_special_tokens=False, split_special_tokens=True, verbose=False).input_ids
    return found


def _cut(begin: list[int], ids: list[int], room: int) -> list[int]:
    """Returns ``begin`` and as many of the last ``ids`` as fit into ``room``."""
    return begin + ids[max(0, len(ids) - room + len(begin)) :]
