"""Prompts in the model's own chat template, ``prompt.template = "chat"``: for models tuned for chat.

A chat template is a Jinja program that comes with the model, so it is untrusted. It never sees an example. A bounded
process (:mod:`ferret_core.datasets.tokenization.template_process`) renders it once for each sequence of roles, with
random marks instead of messages. The texts between the marks form a literal template that is used for every
conversation with these roles.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.template_process import SECONDS, TOO_LONG
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Messages = list[dict[str, str]]
Roles = tuple[str, ...]
"""The roles of a conversation, as a rule before its last answer."""
QUESTION: Roles = ("user",)
ANSWERED: Roles = ("user", "assistant")
MARGIN = " \n"
"""Blanks around a mark: they show if the template trims a message."""
WRITTEN = {MARGIN: "", "": ".strip()"}
"""By the blanks that a template leaves around a mark: what it does with a message."""
WAIT_SECONDS = 60
"""Time limit of the process: its own limit is on processor time, and the machine may be busy."""
TOGETHER = 256
"""Messages per process; a longer conversation has a separate one."""
MOST_KNOWN = 4096


class _Unusable(Exception):
    """The reason why a chat template cannot be used."""


class _Literal(NamedTuple):
    """A chat template of fixed texts and messages, and the text after the last message."""

    jinja: str
    end: str


_known: dict[tuple[str, str, Roles], _Literal | _Unusable] = {}
"""Literal templates by chat template, special tokens and roles."""


def require_chat(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises ``spec.invalid`` if the model has no chat template, or one that does not accept a single question."""
    _literal_templates(tokenizer, [QUESTION, ANSWERED])


def answer_end(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Returns the special token that the chat template writes after an answer, or None.

    It can differ from the tokenizer's end-of-text token: Gemma's answers end with ``<end_of_turn>``. Raises
    ``spec.invalid`` as :func:`chat_ids`.
    """
    template = _literal_templates(tokenizer, [ANSWERED])[ANSWERED]
    if isinstance(template, _Unusable):
        return None
    ids = tokenizer(template.end.lstrip(), add_special_tokens=False).input_ids[:1]
    special = tokenizer.added_tokens_decoder
    return ids[0] if ids and ids[0] in special and special[ids[0]].special else None


def chat_ids(examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Returns the tokens of each example's conversation up to the start of its last answer, the assistant's.

    Raises ``spec.invalid`` for a tokenizer without a chat template, for a template that does not put a question between
    two fixed texts, and for one that takes more time, memory or text than a template needs; ``dataset.invalid``, with
    the number of the example, for a conversation that the template does not render.
    """
    conversations = [conversation(example) for example in examples]
    roles = [tuple(message["role"] for message in messages) for messages in conversations]
    templates = _literal_templates(tokenizer, roles)
    found: list[list[int]] = []
    for number, (messages, asked) in enumerate(zip(conversations, roles, strict=True), start=1):
        if isinstance(template := templates[asked], _Unusable):
            what = f"example {number} is a conversation of {', '.join(asked)}"
            message = f"{what}, which the model's chat template does not take ({template}): change or remove it"
            raise FerretError("dataset.invalid", message)
        found.append(rendered_ids(messages, tokenizer, template.jinja))
    return found


def conversation(example: Example) -> Messages:
    """Returns the messages before the answer, as chat models are trained on them; an input follows its instruction."""
    earlier = [{"role": turn.role, "content": turn.content} for turn in example.turns]
    return [*earlier, {"role": "user", "content": "\n\n".join(filter(None, [example.instruction, example.input]))}]


def rendered_ids(messages: Messages, tokenizer: PreTrainedTokenizerBase, template: str) -> list[int]:
    """Returns the messages' tokens by ``template``, which must be Ferret's own. Their text is never interpreted."""
    rendered: Any = tokenizer.apply_chat_template(
        messages, chat_template=template, add_generation_prompt=True, return_dict=True, sanitize_control_tokens=True
    )
    return cast("list[int]", rendered["input_ids"])


def _literal_templates(
    tokenizer: PreTrainedTokenizerBase, wanted: Sequence[Roles]
) -> dict[Roles, _Literal | _Unusable]:
    """Returns by roles the template of literal text and messages, or the reason against one.

    Raises ``spec.invalid`` as :func:`chat_ids`.
    """
    if not tokenizer.chat_template:
        raise _refused("has no chat template")
    try:
        key = tokenizer.get_chat_template(), json.dumps(tokenizer.special_tokens_map, default=str)
        found = {roles: _known[*key, roles] for roles in wanted if (*key, roles) in _known}
        for part in _in_parts(sorted(set(wanted) - set(found))):
            found |= zip(part, _literals(*key, part), strict=True)
        question = found.get(QUESTION)
        if isinstance(question, _Unusable):
            raise question
    except (_Unusable, ValueError) as error:
        raise _refused(f"has a chat template that does not take a question: {error}") from error
    if len(_known) > MOST_KNOWN:
        _known.clear()
    _known.update({(*key, roles): template for roles, template in found.items()})
    return found


def _in_parts(wanted: Iterable[Roles]) -> Iterator[list[Roles]]:
    part: list[Roles] = []
    for roles in wanted:
        if part and sum(map(len, part)) + len(roles) > TOGETHER:
            yield part
            part = []
        part.append(roles)
    if part:
        yield part


def _literals(template: str, special_tokens: str, wanted: Sequence[Roles]) -> list[_Literal | _Unusable]:
    marked = [[f"Mark{secrets.token_hex(16)}" for _ in roles] for roles in wanted]
    wide = [[f"{MARGIN}{mark}{MARGIN}" for mark in marks] for marks in marked]
    messages = [*map(_messages, wanted, marked), *map(_messages, wanted, wide)]
    texts = _render(template, special_tokens, messages)
    return [_literal(*each) for each in zip(texts[: len(wanted)], texts[len(wanted) :], marked, strict=True)]


def _messages(roles: Roles, contents: Sequence[str]) -> Messages:
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]


def _literal(plain: str | None, wide: str | None, marks: Sequence[str]) -> _Literal | _Unusable:
    """Returns the template with the texts around the ``marks``."""
    if plain is None or wide is None:
        return _Unusable("it fails")
    fixed, spaced = _around(plain, marks), _around(wide, marks)
    if fixed is None or spaced is None:
        return _Unusable("its text does not have every message once, in their order")
    parts, blanks = [_text(fixed[0])], ""
    for number, text in enumerate(fixed[1:]):
        left = [each for each in WRITTEN if spaced[number] == f"{blanks}{fixed[number]}{each}"]
        if not left:
            break
        (blanks,) = left
        parts += [f"{{{{ messages[{number}]['content']{WRITTEN[blanks]} }}}}", _text(text)]
    else:
        if spaced[-1] == f"{blanks}{fixed[-1]}":
            return _Literal("".join(parts), fixed[-1])
    return _Unusable("its text around a message depends on the message")


def _around(text: str, marks: Sequence[str]) -> list[str] | None:
    """Returns the texts before, between and after the ``marks``; None unless each is there once, in this order."""
    if any(text.count(mark) != 1 for mark in marks):
        return None
    found: list[str] = []
    for mark in marks:
        before, there, text = text.partition(mark)
        if not there:
            return None
        found.append(before)
    return [*found, text]


def _text(text: str) -> str:
    """Returns Jinja that prints ``text``; it reads escapes like Python, which has no surrogate pairs, unlike JSON."""
    return f"{{{{ {json.dumps(text, ensure_ascii=False)} }}}}"


def _render(template: str, special_tokens: str, conversations: list[Messages]) -> list[str | None]:
    """Returns the text of each conversation; None for one that the template rejects."""
    asked = {"template": template, "special_tokens": json.loads(special_tokens), "conversations": conversations}
    command = [sys.executable, "-P", "-m", "ferret_core.datasets.tokenization.template_process"]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # each thread would use address space
    text = json.dumps(asked).encode()
    try:
        done = subprocess.run(command, input=text, capture_output=True, timeout=WAIT_SECONDS, env=environment)
    except subprocess.TimeoutExpired as error:
        raise _Unusable(f"it does not end within {WAIT_SECONDS} seconds") from error
    if done.returncode == TOO_LONG:
        raise _Unusable("its text for short messages is too long")
    if done.returncode:
        raise _Unusable(f"it fails, or takes more than {SECONDS:.0f} second or too much memory")
    return cast("list[str | None]", json.loads(done.stdout))


def _refused(what: str) -> FerretError:
    message = f"the model {what}; use paper, alpaca or dolly, or a model tuned for chat"
    return FerretError.of_field("spec.invalid", "prompt.template", "chat", message)
