"""The prompt of training as a chat template for exported models: the prompt is part of what a model learned.

The user's message is the instruction, a system message the input. There is one question, as in training. An answer
after it is the assistant's, and ends as in training.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.chat import Messages, rendered_ids
from ferret_core.datasets.tokenization.prompt import WORDINGS
from ferret_core.datasets.tokenization.tokenize import encode_prompts
from ferret_core.protocol.spec import Worded

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LEADS = ("", "bos_token + ", "bos_token + ' ' + ")
"""Possible prefixes of the text, as Jinja: some tokenizers begin every text with a token, which a chat template must
write; after it some omit the blank that they put before the first word of a text."""
PROBES = (Example("Count the words.", "bell school kite", ""), Example("Name a colour.", "", ""))
UNCUT = 1 << 20
ONE_QUESTION = "this model was tuned on single questions: give one user message, and its input as the system message"
JINJA = """\
{%- set said = namespace(users=0, user='', system='', assistant=none) -%}
{%- for message in messages -%}
{%- if message['role'] == 'system' -%}
{%- set said.system = message['content'] -%}
{%- elif message['role'] == 'user' -%}
{%- set said.user = message['content'] -%}
{%- set said.users = said.users + 1 -%}
{%- elif message['role'] == 'assistant' -%}
{%- set said.assistant = message['content'] -%}
{%- endif -%}
{%- endfor -%}
{%- if said.users != 1 -%}
{{- raise_exception(<one question>) -}}
{%- endif -%}
{{- <lead>(<preamble> if said.system else <without input>) + <instruction> + said.user -}}
{%- if said.system -%}
{{- <input> + said.system -}}
{%- endif -%}
{%- if add_generation_prompt or said.assistant is not none -%}
{{- <response> -}}
{%- endif -%}
{%- if said.assistant is not none -%}
{{- said.assistant + eos_token | default('') -}}
{%- endif -%}"""


def messages_of(instruction: str, input: str = "") -> Messages:
    """Returns a question as messages for these templates."""
    given = [{"role": "system", "content": input}] if input else []
    return [*given, {"role": "user", "content": instruction}]


def is_of_training(template: str) -> bool:
    """True if a chat template is one of these, not one by the base model's authors."""
    return any(template == jinja(wording, lead) for wording in WORDINGS for lead in LEADS)


def fitting(tokenizer: PreTrainedTokenizerBase, template: Worded) -> str | None:
    """Returns the chat template that gives the tokens of training with this tokenizer; None if none does."""
    leads = LEADS if tokenizer.bos_token else LEADS[:1]
    return next((text for lead in leads if _fits(text := jinja(template, lead), tokenizer, template)), None)


def jinja(template: Worded, lead: str = "") -> str:
    """Returns the template as Jinja, after ``lead``."""
    preamble, without_input, gap = WORDINGS[template]
    texts = {
        "one question": ONE_QUESTION,
        "preamble": preamble,
        "without input": without_input,
        "instruction": f"\n\n### Instruction:{gap}",
        "input": f"\n\n### Input:{gap}",
        "response": "\n\n### Response:",
    }
    filled = JINJA.replace("<lead>", lead)
    for name, text in texts.items():
        filled = filled.replace(f"<{name}>", json.dumps(text))
    return filled


def _fits(text: str, tokenizer: PreTrainedTokenizerBase, template: Worded) -> bool:
    asked = [rendered_ids(messages_of(probe.instruction, probe.input), tokenizer, text) for probe in PROBES]
    return asked == encode_prompts(PROBES, tokenizer, UNCUT, template)
