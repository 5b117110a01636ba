"""Prompts in the model's own chat template, ``prompt.template = "chat"``: for models tuned for chat.

A chat template is a Jinja program that comes with the model, so it is untrusted. It never sees an example. A bounded
process (:mod:`ferret_core.datasets.tokenization.template_process`) renders it once, for a random mark instead of a
question. The texts before and after the mark form a literal template that is used for every question.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.template_process import SECONDS, TOO_LONG
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Messages = list[dict[str, str]]
MARGIN = " \n"
"""Blanks around the mark: they show if the template trims a question."""
CONTENT = "messages[0]['content']"
WRITTEN = {CONTENT: MARGIN, f"{CONTENT}.strip()": ""}
"""Forms of the question in a template, with the blanks that each leaves on both sides of the mark."""
WAIT_SECONDS = 60
"""Time limit of the process: its own limit is on processor time, and the machine may be busy."""


class _Unusable(Exception):
    """The reason why a chat template cannot be used."""


def require_chat(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises ``spec.invalid`` if the model has no chat template, or one that does not accept a single question."""
    question_template(tokenizer)


def chat_ids(example: Example, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Returns the tokens of the question as a user's only message, up to the start of the assistant's answer.

    Raises the errors of :func:`question_template`.
    """
    return rendered_ids(one_message(example.instruction, example.input), tokenizer, question_template(tokenizer))


def question_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """Returns the tokenizer's chat template for one question, as literal text around the question.

    Raises ``spec.invalid`` for a tokenizer without a chat template, for a template that does not put a question between
    two fixed texts, and for one that takes more time, memory or text than a template needs.
    """
    if tokenizer.chat_template is None:
        raise _refused("has no chat template")
    try:
        template = tokenizer.get_chat_template()
        return _literal(template, json.dumps(tokenizer.special_tokens_map, default=str))
    except (_Unusable, ValueError) as error:
        raise _refused(f"has a chat template that does not take a question: {error}") from error


def one_message(instruction: str, input: str) -> Messages:
    """Returns a question in the message format that chat models are trained on."""
    return [{"role": "user", "content": "\n\n".join(filter(None, [instruction, input]))}]


def rendered_ids(messages: Messages, tokenizer: PreTrainedTokenizerBase, template: str) -> list[int]:
    """Returns the messages' tokens by ``template``, which must be Ferret's own. Their text is never interpreted."""
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
    """Returns a Jinja string literal. Jinja reads escapes like Python, which has no surrogate pairs, unlike JSON."""
    return json.dumps(text, ensure_ascii=False)


def _render(template: str, special_tokens: str, questions: list[str]) -> list[str]:
    asked = {"template": template, "special_tokens": json.loads(special_tokens), "questions": questions}
    command = [sys.executable, "-P", "-m", "ferret_core.datasets.tokenization.template_process"]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # each thread would use address space
    text = json.dumps(asked).encode()
    try:
        done = subprocess.run(command, input=text, capture_output=True, timeout=WAIT_SECONDS, env=environment)
    except subprocess.TimeoutExpired as error:
        raise _Unusable(f"it does not end within {WAIT_SECONDS} seconds") from error
    if done.returncode == TOO_LONG:
        raise _Unusable("its text for a short question is too long")
    if done.returncode:
        raise _Unusable(f"it fails, or takes more than {SECONDS:.0f} second or too much memory")
    return cast("list[str]", json.loads(done.stdout))


def _refused(what: str) -> FerretError:
    message = f"the model {what}; use paper, alpaca or dolly, or a model tuned for chat"
    return FerretError.of_field("spec.invalid", "prompt.template", "chat", message)
