"""Prompts in the words of the model's own chat template, ``prompt.template = "chat"``: for models tuned for chat.

A chat template is a Jinja program that comes with the model. transformers runs it in a sandbox that reaches neither
files nor Python's own objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ferret_core.datasets._base import Example
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Messages = list[dict[str, str]]


def require_chat(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises ``spec.invalid`` naming the model if it has no chat template, or one that takes no single question."""
    if tokenizer.chat_template is None:
        raise _refused(tokenizer, "has no chat template")
    chat_ids(Example("", "", ""), tokenizer)


def chat_ids(example: Example, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The tokens of the question as the only message of a user, up to where the assistant's answer begins.

    Raises ``spec.invalid`` for a template that cannot be rendered.
    """
    from jinja2 import TemplateError

    try:
        return rendered_ids(one_message(example.instruction, example.input), tokenizer)
    except (TemplateError, ValueError, TypeError) as error:
        raise _refused(tokenizer, f"has a chat template that does not take a question ({error})") from error


def one_message(instruction: str, input: str) -> Messages:
    """A question as the message that models tuned for chat get in training."""
    return [{"role": "user", "content": "\n\n".join(filter(None, [instruction, input]))}]


def rendered_ids(messages: Messages, tokenizer: PreTrainedTokenizerBase, template: str | None = None) -> list[int]:
    """The tokens of the messages by ``template``, or by the tokenizer's own; the messages' text is only text."""
    rendered: Any = tokenizer.apply_chat_template(
        messages, chat_template=template, add_generation_prompt=True, return_dict=True, sanitize_control_tokens=True
    )
    return cast("list[int]", rendered["input_ids"])


def _refused(tokenizer: PreTrainedTokenizerBase, what: str) -> FerretError:
    message = f"the model {tokenizer.name_or_path} {what}: use paper, alpaca or dolly, or a model tuned for chat"
    return FerretError.of_field("spec.invalid", "prompt.template", "chat", message)
