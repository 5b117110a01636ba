"""The prompt of training as a chat template for exported models: the prompt is part of what a model learned.

The user's message is the instruction, a system message the input. There is one question, as in training. An answer
after it is the assistant's, and ends as in training.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.chat import Messages, rendered_ids
from ferret_core.datasets.tokenization.prompt_jinja import LEADS, jinja
from ferret_core.datasets.tokenization.tokenize import encode_prompts
from ferret_core.protocol.spec import Worded

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PROBES = (Example("Count the words.", "bell school kite", ""), Example("Name a colour.", "", ""))
UNCUT = 1 << 20


def messages_of(instruction: str, input: str = "") -> Messages:
    """Returns a question as messages for these templates."""
    given = [{"role": "system", "content": input}] if input else []
    return [*given, {"role": "user", "content": instruction}]


def fitting(tokenizer: PreTrainedTokenizerBase, template: Worded) -> str | None:
    """Returns the chat template that gives the tokens of training with this tokenizer; None if none does."""
    leads = LEADS if tokenizer.bos_token else LEADS[:1]
    return next((text for lead in leads if _fits(text := jinja(template, lead), tokenizer, template)), None)


def _fits(text: str, tokenizer: PreTrainedTokenizerBase, template: Worded) -> bool:
    asked = [rendered_ids(messages_of(probe.instruction, probe.input), tokenizer, text) for probe in PROBES]
    return asked == encode_prompts(PROBES, tokenizer, UNCUT, template)
