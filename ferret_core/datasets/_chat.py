"""Prompts in the words of the model's own chat template, ``prompt.template = "chat"``: for models tuned for chat.

A chat template is a Jinja program that comes with the model, so it may come from anybody. It never sees an example.
A bounded process (:mod:`ferret_core.datasets._template_process`) renders it once, for a random mark in place of a
question. The text on either side of the mark makes a template without a program, by which every question is put.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from ferret_core.datasets._base import Example
from ferret_core.datasets._template_process import SECONDS, TOO_LONG
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Messages = list[dict[str, str]]
MARGIN = " \n"
"""Blanks around the mark: they show whether the template trims a question."""
CONTENT = "messages[0]['content']"
WRITTEN = {CONTENT: MARGIN, f"{CONTENT}.strip()": ""}
"""The question as a template writes it, and the blanks that it leaves on either side of the mark."""
WAIT_SECONDS = 60
"""Until the process is ended: its own limit is of processor time, and the machine may be busy."""


class _Unusable(Exception):
    """Says why a chat template cannot be used."""


def require_chat(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises ``spec.invalid`` if the model has no chat template, or one that takes no single question."""
    question_template(tokenizer)


def chat_ids(example: Example, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The tokens of the question as the only message of a user, up to where the assistant's answer begins.

    Raises as :func:`question_template` does.
    """
    return rendered_ids(one_message(example.instruction, example.input), tokenizer, question_template(tokenizer))


def question_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """The tokenizer's chat template for one question, as literal text around the question.

    Raises ``spec.invalid`` for a tokenizer without a chat template, for one that does not put a question between two
    fixed texts, and for one that takes more time, memory or text than a template needs.
    """
    if tokenizer.chat_template is None:
        raise _refused("has no chat template")
    try:
        template = tokenizer.get_chat_template()
        return _literal(template, json.dumps(tokenizer.special_tokens_map, default=str))
    except (_Unusable, ValueError) as error:
        raise _refused(f"has a chat template that does not take a question: {error}") from error


def one_message(instruction: str, input: str) -> Messages:
    """A question as the message that models tuned for chat get in training."""
    return [{"role": "user", "content": "\n\n".join(filter(None, [instruction, input]))}]


def rendered_ids(messages: Messages, tokenizer: PreTrainedTokenizerBase, template: str) -> list[int]:
    """The tokens of the messages by ``template``, which must be Ferret's own; the messages' text is only text."""
    rendered: Any = tokenizer.apply_chat_template(
        messages, chat_template=template, add_generation_prompt=True, return_dict=True, sanitize_control_tokens=True
    )
    return cast("list[int]", rendered["input_ids"])


@lru_cache
def _literal(template: str, special_tokens: str) -> str:
    mark = f"Mark{secrets.token_hex(16)}"
    plain, wide = _render(template, special_tokens, [mark, f"{MARGIN}{mark}{MARGIN}"])
    before, *after = plain.split(mark)
    if len(after) != 1:
        raise _Unusable(f"its text has the question {len(after)} times")
    for content, blanks in WRITTEN.items():
        if wide == f"{before}{blanks}{mark}{blanks}{after[0]}":
            return f"{{{{ {_text(before)} + {content} + {_text(after[0])} }}}}"
    raise _Unusable("its text around the question depends on the question")


def _text(text: str) -> str:
    """A Jinja string. Jinja reads escapes as Python does, which has no pairs of surrogates as JSON has."""
    return json.dumps(text, ensure_ascii=False)


def _render(template: str, special_tokens: str, questions: list[str]) -> list[str]:
    asked = {"template": template, "special_tokens": json.loads(special_tokens), "questions": questions}
    command = [sys.executable, "-P", "-m", "ferret_core.datasets._template_process"]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # each thread would take address space
    text = json.dumps(asked).encode()
    try:
        done = subprocess.run(command, input=text, capture_output=True, timeout=WAIT_SECONDS, env=environment)
    except subprocess.TimeoutExpired as error:
        raise _Unusable(f"it does not end within {WAIT_SECONDS} seconds") from error
    if done.returncode == TOO_LONG:
        raise _Unusable("it makes too long a text of a short question")
    if done.returncode:
        raise _Unusable(f"it fails, or takes more than {SECONDS:.0f} second or too much memory")
    return cast("list[str]", json.loads(done.stdout))


def _refused(what: str) -> FerretError:
    message = f"the model {what}; use paper, alpaca or dolly, or a model tuned for chat"
    return FerretError.of_field("spec.invalid", "prompt.template", "chat", message)
