"""The worded prompts as Jinja, the language of chat templates, and how to recognize them in a model."""

from __future__ import annotations

import json

from ferret_core.datasets.tokenization.prompt import WORDINGS
from ferret_core.protocol.spec import Worded

LEADS = ("", "bos_token + ", "bos_token + ' ' + ")
"""Possible prefixes of the text, as Jinja: some tokenizers begin every text with a token, which a chat template must
write; after it some omit the blank that they put before the first word of a text."""
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


def wording_of(template: object) -> Worded | None:
    """Returns the worded prompt that a chat template renders; None for a chat template by others."""
    return next((wording for wording in WORDINGS for lead in LEADS if template == jinja(wording, lead)), None)
